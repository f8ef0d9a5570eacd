"""The model: its shape, its blocks, its recipe, and other layouts."""
