"""Every candidate of top-k. Equals are tried in this order."""

from ._native import CORE
from ._tensor import EXTREMUM, SELECT, SELECT_LAST, SORT, SORT_LAST
from ._triton import STREAMING_GPU

CANDIDATES = (STREAMING_GPU, CORE, SELECT, SELECT_LAST, EXTREMUM, SORT_LAST, SORT)
