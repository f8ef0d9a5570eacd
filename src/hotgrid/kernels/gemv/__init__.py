"""kernels.gemv: a matrix times one vector or a few, at the speed of reading the matrix."""

from ._front import gemv as gemv, linear as linear
from ._op import GEMV as GEMV, tuned_gemv as tuned_gemv
