"""kernels.convolve: every cell becomes a weighted sum of its neighbours, near or far."""

from ._front import convolve as convolve
from ._op import CONVOLVE as CONVOLVE, tuned_convolve as tuned_convolve
