"""kernel: a step as recorded operations, and the kernels that are built from them."""
