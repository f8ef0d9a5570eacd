"""Models of the next byte, and what they say about each one."""
