"""Weights in files: strict, partial by selector, and never running code."""

from ._files import save_weights as save_weights
from ._load import LoadReport as LoadReport, load_partial as load_partial
