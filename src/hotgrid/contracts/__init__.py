"""contracts: the shapes that tensors must have, declared once and checked everywhere.

Imports only `errors` and `_native`, and no tensor library: anything
with a `.shape`, or a tuple of sizes, can be checked.

    image = Contract("batch (rows window) (columns window) channels")
    b, rows, columns = image.unpack("batch rows columns", x, {"window": 4})
"""

from hotgrid.errors import (
    ContractError as ContractError,
    ContractSyntaxError as ContractSyntaxError,
)

from ._checked import checked as checked
from ._contract import (
    Contract as Contract,
    assert_shape as assert_shape,
    unpack_shape as unpack_shape,
)
from ._periodic import (
    PeriodicContract as PeriodicContract,
    Schedule as Schedule,
    assert_shape_periodically as assert_shape_periodically,
)
