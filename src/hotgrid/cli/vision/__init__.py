"""The commands of `hotgrid vision`."""
