"""Segmenters: bytes cut into patches."""
