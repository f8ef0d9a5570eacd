"""Activations, norms, MLPs, heads, dropout of paths and blocks, and initialisers."""
