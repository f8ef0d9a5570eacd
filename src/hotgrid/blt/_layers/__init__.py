"""Parts that the models of this package share: ids of bytes, blocks, files of weights."""
