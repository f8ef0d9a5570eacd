"""kernels: operations with two or more implementations, and the measurements that choose.

Stands on `tensors`; `cluster` and everything above stand on it. A caller names
what is to be computed and this package decides how. Each op has a private package with a
readable reference, candidates and the function that callers use; `tune` holds the
machinery that times candidates and remembers winners, and measures the copy bandwidth of
a device, the figure that every "share of the hardware limit" in hotgrid is a share of.
"""

from ._capture import Captured as Captured, capture as capture
from ._codebook import (
    CodebookLinear as CodebookLinear,
    Target as Target,
    compress as compress,
    load_compressed as load_compressed,
    save_compressed as save_compressed,
)
from ._convolve import convolve as convolve
from ._gemv import gemv as gemv, linear as linear
from ._ops import OPS as OPS
from ._topk import argtopk as argtopk, topk as topk
from .tune import (
    Bandwidth as Bandwidth,
    copy_bandwidth as copy_bandwidth,
    kept_bandwidth as kept_bandwidth,
)
