"""vectors: steps of cells as vectors, over arrays with channels last."""
