"""Every candidate of gemv. Equals are tried in this order."""

from ._native import CORE
from ._tensor import CONVERTED, LINEAR, MATMUL, VECTOR
from ._triton import WALKING_GPU

CANDIDATES = (CORE, WALKING_GPU, VECTOR, MATMUL, LINEAR, CONVERTED)
