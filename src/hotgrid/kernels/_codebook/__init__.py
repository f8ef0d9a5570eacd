"""kernels._codebook: linear layers whose weights are codebooks, multiplied without decoding.

`compress` replaces `nn.Linear` by `CodebookLinear`, in the form that meets a target of size,
bits or error. The error is measured, stored and shown; a form beyond the limit is refused.
"""

from ._learn._compress import compress as compress
from ._learn._target import Target as Target
from ._linear import CodebookLinear as CodebookLinear
from ._op import tuned_codebook as tuned_codebook
from ._saved import load_compressed as load_compressed, save_compressed as save_compressed
