"""Every candidate of convolve. Equals are tried in this order."""

from ._bands import BANDS
from ._direct import SHIFTS, WINDOWS
from ._fourier import FOURIER
from ._tables import TABLES

CANDIDATES = (FOURIER, TABLES, BANDS, SHIFTS, WINDOWS)
