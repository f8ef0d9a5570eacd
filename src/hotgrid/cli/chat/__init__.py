"""`hotgrid chat`."""
