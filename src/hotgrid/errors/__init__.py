"""errors: every exception hotgrid raises on purpose. The lowest layer; imports nothing.

    HotgridError
    ├── ContractError (ValueError)          a shape does not meet its contract
    │   └── ContractSyntaxError             the contract itself has a syntax error
    ├── ConfigError (ValueError)            hotgrid.toml, HOTGRID_* or a flag is wrong
    ├── ArgumentError (ValueError)          an argument of a public function is wrong
    │   └── DimensionError (IndexError)     a dimension or index does not exist
    ├── UnstableError (ArithmeticError)     a simulation or training is no longer finite
    ├── KernelError (RuntimeError)          a kernel did something wrong
    ├── StoreError (OSError)                files could not be written or read back
    │   └── DamagedError                    a file is not what was written
    ├── CommunicationError (ConnectionError) another rank was lost
    └── MissingPartError (ImportError)      a part that is not installed was needed

Catch `HotgridError` to catch them all. Each also derives from the built-in
exception a caller would expect, so existing `except ValueError` keeps working.
`near` is the "did you mean" hint at the end of many messages.
"""

from ._near import near as near
from ._tree import (
    ArgumentError as ArgumentError,
    CommunicationError as CommunicationError,
    ConfigError as ConfigError,
    ContractError as ContractError,
    ContractSyntaxError as ContractSyntaxError,
    DamagedError as DamagedError,
    DimensionError as DimensionError,
    HotgridError as HotgridError,
    KernelError as KernelError,
    MissingPartError as MissingPartError,
    ShapeMismatch as ShapeMismatch,
    StoreError as StoreError,
    UnstableError as UnstableError,
)
