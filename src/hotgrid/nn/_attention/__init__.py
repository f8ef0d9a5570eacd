"""Attention: masks, rotary positions, the cache of keys and values, and the module."""
