"""`hotgrid data`."""
