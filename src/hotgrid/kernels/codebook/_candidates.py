"""Every candidate of the codebook product. Equals are tried in this order."""

from ._core import CORE
from ._decoded import DECODED

CANDIDATES = (CORE, DECODED)
