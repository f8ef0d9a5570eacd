"""The model: its shape, its blocks, the dial, and other layouts."""
