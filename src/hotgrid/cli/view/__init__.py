"""cli.view: `hotgrid view`."""
