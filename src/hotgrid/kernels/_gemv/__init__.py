"""kernels._gemv: a matrix times one vector or a few, at the speed of reading the matrix."""

from ._front import gemv as gemv, linear as linear
from ._op import tuned_gemv as tuned_gemv
