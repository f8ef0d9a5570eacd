"""`hotgrid blt`: splits bytes into patches."""
