"""`hotgrid tree`: the modules and parameters of a model."""
