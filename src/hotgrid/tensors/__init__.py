"""tensors: small pure functions on tensors that torch lacks.

Layer: above `contracts` and `config`, below `kernels`. Nothing here keeps state,
chooses an implementation or depends on a device; every function takes tensors and
returns tensors, has a gradient where one makes sense, and compiles without a
graph break. What torch already has is not repeated: docs/reference/tensors.md lists which
torch function to use.
"""

from ._dims import expect_dim as expect_dim
from ._meshgrid import meshgrid_stack as meshgrid_stack
from ._neighbourhood import (
    map_windows as map_windows,
    shift as shift,
    windows as windows,
)
from ._products import outer_dim as outer_dim, prod_dims as prod_dims
from ._ravel import ravel_index as ravel_index
from ._slices import Slices as Slices
from ._slicing import slice_dim as slice_dim, slice_fill as slice_fill
