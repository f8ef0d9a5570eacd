"""`hotgrid tokens`: encode, count, train and inspect."""
