"""_measure: times of functions, and what the hardware can do."""
