"""Families of models, their sizes as tables, and the files of their weights."""
