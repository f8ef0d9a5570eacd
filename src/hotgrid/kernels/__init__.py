"""kernels: operations with two or more implementations, and the measurements that choose.

Layer: above `tensors`, below `cluster`. A caller names an operation, and this package
chooses the implementation. Each op has a private package with a readable reference,
several candidates and the function to call. `tune` times the candidates, remembers the
winners and measures the copy bandwidth of a device, the reference for every "share of the
hardware limit" in hotgrid.
"""

from ._capture import Captured as Captured, capture as capture
from ._codebook import (
    CodebookLinear as CodebookLinear,
    Target as Target,
    compress as compress,
    load_compressed as load_compressed,
    save_compressed as save_compressed,
)
from ._compiler_paths import (
    quote_torch_folder as quote_torch_folder,
    without_blanks as without_blanks,
)
from ._convolve import convolve as convolve
from ._denormals import denormals_as_zero as denormals_as_zero
from ._gemv import gemv as gemv, linear as linear
from ._ops import OPS as OPS
from ._topk import argtopk as argtopk, topk as topk
from .tune import (
    Bandwidth as Bandwidth,
    copy_bandwidth as copy_bandwidth,
    kept_bandwidth as kept_bandwidth,
)
