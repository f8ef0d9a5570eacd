"""kernels._convolve: every cell becomes a weighted sum of its neighbours."""

from ._front import convolve as convolve
from ._op import tuned_convolve as tuned_convolve
