"""The rivals of the grid, one file each: the same case, as well as it can be written there."""
