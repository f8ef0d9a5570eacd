"""`hotgrid doctor`."""
