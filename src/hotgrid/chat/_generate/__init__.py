"""Generating text: sampling, one sequence, and many over a paged cache."""
