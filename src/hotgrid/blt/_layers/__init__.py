"""What the models of this package share: the ids of bytes, blocks, and files of weights."""
