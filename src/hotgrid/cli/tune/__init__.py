"""`hotgrid tune`."""
