"""Every candidate of convolve. Equals are tried in this order."""

from ._bands import BANDS
from ._direct import SHIFTS, WINDOWS
from ._fourier import FOURIER

CANDIDATES = (FOURIER, BANDS, SHIFTS, WINDOWS)
