"""_learn: matrices turned into codes, in the form that meets a target."""
