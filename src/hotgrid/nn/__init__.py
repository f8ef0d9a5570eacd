"""nn: blocks of networks as plain modules, and parameters chosen by path.

    weights = select(model, "GPT/*[@name='h']//Linear/*[@name='weight'][@rank=2]").parameters()

`tree` and `select` work with any `torch.nn.Module`.
"""

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
