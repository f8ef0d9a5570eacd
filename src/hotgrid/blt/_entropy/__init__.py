"""Models of the next byte, and their outputs for each byte."""
