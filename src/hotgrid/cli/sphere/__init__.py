"""`hotgrid sphere`: places of a corpus around a centre."""
