"""`hotgrid train`."""
