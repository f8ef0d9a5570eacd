"""Points on spherical shells: their radius, and the points in a cone."""
