"""Every candidate of the transforms of real images. Equals are tried in this order."""

from ._matrix import INVERSE_MATRIX, MATRIX
from ._tensor import INVERSE_SPLIT, INVERSE_TORCH, SPLIT, TORCH

CANDIDATES = (TORCH, SPLIT, MATRIX)
INVERSE_CANDIDATES = (INVERSE_TORCH, INVERSE_SPLIT, INVERSE_MATRIX)
