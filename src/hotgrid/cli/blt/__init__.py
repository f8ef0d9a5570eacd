"""`hotgrid blt`: bytes in patches."""
