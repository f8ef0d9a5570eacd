"""Layers of image models: patches, windows, attention in windows, position biases."""
