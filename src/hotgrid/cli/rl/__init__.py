"""`hotgrid rl`: train agents, watch them, list environments."""
