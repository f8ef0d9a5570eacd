"""Every candidate of the codebook product. Equals are tried in this order."""

from ._core import CORE
from ._decoded import DECODED
from ._triton import CODED_GPU

CANDIDATES = (CORE, CODED_GPU, DECODED)
