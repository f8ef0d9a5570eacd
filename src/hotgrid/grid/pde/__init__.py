"""pde: partial differential equations on the grid, one file each."""

from ._gray_scott import GrayScott as GrayScott
from ._heat import Heat as Heat
from ._laplacian import laplacian as laplacian
from ._wave import Wave as Wave
