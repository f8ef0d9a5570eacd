"""`hotgrid sphere`: a corpus arranged on a sphere."""
