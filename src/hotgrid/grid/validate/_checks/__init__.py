"""checks: comparisons of models with exact and published results, one module for each kind."""
