"""The exception tree drawn in the docstring of the package."""

from collections.abc import Mapping
from dataclasses import dataclass


class HotgridError(Exception):
    """Root of every exception that hotgrid raises on purpose.

    `exit_code` is what the command line returns for it.
    """

    exit_code = 1


@dataclass(frozen=True)
class ShapeMismatch:
    """The facts of a `ContractError`, for programs that need more than its message."""

    contract: str
    shape: tuple[int, ...] | None = None
    dimension: int | None = None
    expression: str | None = None
    reason: str = ""
    bindings: Mapping[str, int] | None = None
    argument: str | None = None
    location: str | None = None


class ContractError(HotgridError, ValueError):
    """A shape does not meet its contract.

    `str(error)` is the readable block; `error.mismatch` holds the same facts
    as fields (`shape`, `dimension`, `expression`, `reason`, `bindings`, ...).
    """

    mismatch: ShapeMismatch | None = None


class ContractSyntaxError(ContractError):
    """A contract has a syntax error; the message shows a caret under the place."""


class ConfigError(HotgridError, ValueError):
    """A setting is unknown or invalid; the message says where it was read."""


class ArgumentError(HotgridError, ValueError):
    """An argument of a public function is wrong; the message names it and its value."""


class DimensionError(ArgumentError, IndexError):
    """A dimension or an index does not exist in the tensor."""


class UnstableError(HotgridError, ArithmeticError):
    """A simulation or a training run is no longer finite; the message says when and where.

    Attributes:
        step: The first step that left numbers which are not finite; None if not known.
        cell: The first such cell; None if not known.
        cause: The likely cause.
    """

    def __init__(
        self,
        text: str = "",
        *,
        step: int | None = None,
        cell: tuple[int, ...] | None = None,
        cause: str = "",
    ) -> None:
        super().__init__(text)
        self.step = step
        self.cell = cell
        self.cause = cause


class KernelError(HotgridError, RuntimeError):
    """A kernel accessed memory out of bounds, or computed NaN or a wrong result."""


class StoreError(HotgridError, OSError):
    """Files could not be written or read back; existing files are unchanged."""


class DamagedError(StoreError):
    """A file is not what was written: truncated, changed, or partly missing."""


class CommunicationError(HotgridError, ConnectionError):
    """Another rank was lost or did not answer in time; the message has the details.

    A second try may succeed, so the exit code is that of a temporary failure.
    """

    exit_code = 75


class MissingPartError(HotgridError, ImportError):
    """An optional part is not installed; the message says how to get it."""


# Tracebacks and pickles show the public module of a class, not this file.
for _each in tuple(vars().values()):
    if isinstance(_each, type) and _each.__module__ == __name__:
        _each.__module__ = "hotgrid.errors"
