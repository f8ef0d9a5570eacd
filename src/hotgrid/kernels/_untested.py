"""Kernels that agree with their twins in Triton's interpreter, and that no GPU has run yet."""

import os

UNTESTED = os.environ.get("HOTGRID_UNTESTED_KERNELS") == "on"
"""Whether they are used; `HOTGRID_UNTESTED_KERNELS=on` says so."""
