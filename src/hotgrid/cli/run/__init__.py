"""`hotgrid models` and `hotgrid run`."""
