"""`hotgrid plan`."""
