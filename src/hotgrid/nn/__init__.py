"""nn: blocks of networks as plain modules, and parameters chosen by path.

    weights = select(model, "GPT/*[@name='h']//Linear/*[@name='weight'][@rank=2]").parameters()

`tree` and `select` work with any `torch.nn.Module`. Blocks check the shapes that they are
given; norms, activations and initialisers go by name.
"""

from ._attention._attend import attention as attention
from ._attention._cache import KVCache as KVCache
from ._attention._mask import Mask as Mask
from ._attention._module import Attention as Attention
from ._attention._paged import PagedCache as PagedCache, Pages as Pages
from ._attention._rotary import Rotary as Rotary
from ._blocks._activations import (
    ACTIVATIONS as ACTIVATIONS,
    Activation as Activation,
)
from ._blocks._drop import (
    DropBlock2d as DropBlock2d,
    DropPath as DropPath,
    drop_path_rates as drop_path_rates,
)
from ._blocks._head import (
    Head as Head,
    softcap as softcap,
)
from ._blocks._initializers import (
    INITIALIZERS as INITIALIZERS,
    Init as Init,
    initialize as initialize,
    materialize as materialize,
)
from ._blocks._mlp import MLP as MLP
from ._blocks._norms import (
    NORMS as NORMS,
    LayerNorm as LayerNorm,
    Norm as Norm,
    RMSNorm as RMSNorm,
)
from ._tree._node import (
    Node as Node,
    Tree as Tree,
    tree as tree,
)
from ._tree._query import (
    Query as Query,
    query as query,
)
from ._tree._selection import (
    Selection as Selection,
    select as select,
)
