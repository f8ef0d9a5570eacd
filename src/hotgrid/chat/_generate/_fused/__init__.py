"""Decoding on a GPU in few kernels: five for a layer, one for the head, one for the choice."""
