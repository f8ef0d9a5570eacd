"""Every operation of a step on trial: whether it works cell by cell."""

import linecache
import math
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple, NoReturn
from weakref import WeakValueDictionary
from zlib import crc32

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from hotgrid.errors import ArgumentError
from hotgrid.grid.forms.kernel._tape import same_bits
from hotgrid.grid.model import Look
from hotgrid.tensors._torch_private import TorchDispatchMode

# Cell by cell, though torch does not tag them so. New tensors are the same in every cell.
_POINTWISE = {
    *("copy_", "copy", "fill_", "fill", "zero_", "_to_copy", "detach", "alias"),
    *("zeros", "ones", "full", "empty", "zeros_like", "ones_like", "full_like", "empty_like"),
    *("new_zeros", "new_ones", "new_full", "new_empty", "scalar_tensor", "lift_fresh"),
    *("floor_divide", "hardswish", "prelu", "_prelu_kernel"),
    *("__and__", "__or__", "__xor__", "real", "imag"),
}
# Arguments that are sizes and no numbers of the result.
_SIZES = {"size", "stride"}
# More constant numbers are compared by a checksum.
_MOST_NUMBERS = 64
# Another order of the same numbers; a wrong one shows in the result.
_LAYOUT = {
    *("view", "_unsafe_view", "reshape", "_reshape_alias", "expand", "permute", "transpose"),
    *("t", "unsqueeze", "squeeze", "stack", "clone"),
}
_PRODUCTS = {"mm", "bmm", "addmm", "baddbmm", "mv", "dot", "addmv"}
# Looked up with what a cell holds; the argument that is the table must hold no cells.
_TABLES = {
    "isin": "test_elements",
    "bucketize": "boundaries",
    "searchsorted": "sorted_sequence",
    "take": "self",
    "embedding": "weight",
}
_LOOKUPS = {"index", "_unsafe_index", *_TABLES, *_PRODUCTS}
_READS = {"_local_scalar_dense", "equal", "is_nonzero", "item"}
# These read memory without an operation.
_HOST_READS = {
    *("tolist", "numpy", "__array__", "__dlpack__", "__repr__", "__format__"),
    *("data_ptr", "storage", "untyped_storage"),
}
_INSTEAD = (
    "A step sees one cell and, through its handles, its neighbours. Sums over the grid belong "
    "in an `@observable`, what differs from cell to cell in an `Input`, and other cells are "
    "read by offset, such as `u[0, 1]`; Fourier transforms and other work on whole arrays "
    "belong in a `phase`"
)
_HERE = str(Path(__file__).parent)
_ENGINE = tuple(
    f"{_HERE}/{name}.py"
    for name in ("_operations", "_step_check", "_neighbours", "_form", "_roll")
)
_TORCH = str(Path(torch.__file__).parent)


Place = tuple[str, int]
"""A file and a line."""
Noted = tuple[str, str, Place]
"""An operation, its numbers, and its location."""


class Operations(TorchDispatchMode):
    """Watches the operations of a step.

    Arguments:
        step: The name of the step, for errors.
        primes: The sides of the trial grid; an axis that one of them divides carries space.
        given: What the step must not write into.

    Attributes:
        noted: For every operation that works cell by cell its name, its numbers and its
            file and line.
    """

    def __init__(self, step: str, primes: Sequence[int], given: Sequence[Tensor]) -> None:
        super().__init__()
        self.noted: list[Noted] = []
        self._step = step
        self._primes = primes
        # Kept alive, so that no other tensor gets its place in memory.
        self._given = {x.untyped_storage().data_ptr(): x for x in given}
        # What the step has seen, and what it held.
        self._seen: list[tuple[Tensor, Tensor]] = [(x, x.clone()) for x in given]
        # Tensors that were made without cells and got some, by their memory.
        self._filled: dict[int, Tensor] = {}
        # Tensors that hold cells, by identity, as long as they live.
        self._cells: WeakValueDictionary[int, Tensor] = WeakValueDictionary()
        self._cells.update({id(x): x for x in given})
        self._looking = False
        self._known: dict[torch.Size, bool] = {}

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """False: torch would import dynamo just to skip it, which takes two seconds."""
        return False

    def giving(self, look: Look) -> Look:
        """A look whose own operations are not the step's; what it gives is watched."""

        def watched(plane: Tensor, offset: tuple[int, ...]) -> Tensor:
            self._looking = True
            try:
                seen = look(plane, offset)
                before = seen.clone()
                if seen.untyped_storage().data_ptr() not in self._given:
                    self._given[seen.untyped_storage().data_ptr()] = seen
                    self._seen.append((seen, before))
            finally:
                self._looking = False
            self._cells[id(seen)] = seen
            return seen

        return watched

    def expect_unwritten(self) -> None:
        """Refuse writes that torch does not see, such as those through `numpy()`."""
        if not all(same_bits(x.flatten(), before.flatten()) for x, before in self._seen):
            raise ArgumentError(
                f"{self._step} writes into a tensor that it was given, perhaps through "
                "`numpy()`; compute a new one, such as `x = x + 1`"
            )

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        if self._looking:
            return func(*args, **kwargs)
        kind = _kind(func)
        named = dict(zip(kind.arguments, args, strict=False))
        named.update(kwargs)
        tensors = [x for x in _flat(named.values()) if isinstance(x, Tensor)]
        watched = [x for x in tensors if self._holds(x)]
        if kind.random:
            self._refuse(
                kind.name,
                "draws random numbers, which differ between forms and meshes; keep a random "
                "number in a `Field` and make the next one from it, as `Life(noise=0.1)` does",
                instead="",
            )
        if watched:
            self._expect_allowed(func, kind, named)
        result = func(*args, **kwargs)
        if watched:
            if kind.mutable:
                self._note_filled(func, named)
            made = [x for x in _flat([result]) if isinstance(x, Tensor)]
            spread = any(self._carries(n) for x in watched for n in x.shape)
            for x in made:
                if spread and not self._keeps_space(x.shape):
                    shape = tuple(x.shape)
                    self._refuse(
                        kind.name, f"makes the shape {shape}, which mixes cells of the grid"
                    )
                self._cells[id(x)] = x
        return result

    def expect_no_read(self, name: str, x: object) -> None:
        """Refuse a call that reads the numbers of cells without an operation."""
        known = name not in _HOST_READS or self._looking
        if not known and isinstance(x, Tensor) and self._holds(x):
            self._refuse(name, "reads numbers on the host, which a compiled step cannot")

    def _holds(self, x: Tensor) -> bool:
        """Whether a tensor holds cells, or lies in memory that was filled with cells."""
        return id(x) in self._cells or (
            bool(self._filled) and x.untyped_storage().data_ptr() in self._filled
        )

    def _note_filled(self, func: Any, named: Mapping[str, Any]) -> None:
        """Memory that was made in the step holds cells from here on, and so do its views."""
        for x in _written(func, named):
            if id(x) not in self._cells:
                self._filled.setdefault(x.untyped_storage().data_ptr(), x)

    def _expect_allowed(self, func: Any, kind: "_Kind", named: Mapping[str, Any]) -> None:
        name = kind.name
        if kind.mutable:
            self._expect_own(func, name, named)
            self._expect_whole(func, name, named)
        if name not in _LOOKUPS:
            self._expect_no_pattern(name, named)
        if name in _READS:
            self._refuse(name, "reads a number on the host, which a compiled step cannot")
        if kind.pointwise:
            self.noted.append((name, self._numbers(name, named), _place()))
        elif name in _TABLES:
            table = named.get(_TABLES[name])
            if isinstance(table, Tensor) and self._holds(table):
                self._refuse(name, "looks through cells of the grid")
        elif name in _PRODUCTS:
            factors = [x for x in named.values() if isinstance(x, Tensor)][-2:]
            if self._carries(factors[0].shape[-1]):
                self._refuse(name, "adds up over cells of the grid")
        elif name in ("index", "index_put", "index_put_", "_unsafe_index"):
            self._expect_local_index(name, named)
        elif name not in _LAYOUT:
            self._expect_apart(func, name, named)

    def _numbers(self, name: str, named: Mapping[str, Any]) -> str:
        """The numbers of an operation, also those in constant tensors, once for all cells."""
        values = _flat(x for key, x in _read(name, named).items() if key not in _SIZES)
        found = [str(x) for x in values if isinstance(x, int | float | complex)]
        for x in values:
            if isinstance(x, Tensor) and not self._holds(x):
                for axis in range(x.ndim):
                    if self._carries(x.shape[axis]):
                        x = x.narrow(axis, 0, 1)  # noqa: PLW2901
                few = x.numel() <= _MOST_NUMBERS
                found.append(str(x.flatten().tolist()) if few else _checksum(x))
        return ", ".join(found)

    def _expect_apart(self, func: Any, name: str, named: Mapping[str, Any]) -> None:
        """Along components every operation is local; along space none of these is."""
        x = next(x for x in _flat(named.values()) if isinstance(x, Tensor))
        asked = [a for a in func._schema.arguments if a.name in ("dim", "dims")]
        if not asked:
            self._refuse(name, "works on the whole grid, or is not known to work cell by cell")
        # Torch leaves out arguments that are as by default.
        dims = named.get(asked[0].name, asked[0].default_value)
        axes = list(dims) if isinstance(dims, list | tuple) else [dims]
        if dims is None or not axes:
            axes = list(range(x.ndim))
        for axis in axes:
            if x.ndim and self._carries(x.shape[axis]) and not _is_whole(name, named, x, axis):
                self._refuse(name, "works across cells of the grid")

    def _expect_local_index(self, name: str, named: Mapping[str, Any]) -> None:
        x, indices = named["self"], named["indices"]
        if not self._holds(x):
            return  # a table, looked up with what a cell holds
        axis = 0
        for index in indices:
            wide = index.ndim if index is not None and index.dtype == torch.bool else 1
            over = any(self._carries(n) for n in x.shape[axis : axis + wide])
            masked = wide == x.ndim and name != "index" and named["values"].numel() == 1
            if index is not None and over and not masked:
                self._refuse(name, "picks cells of the grid by index")
            axis += wide

    def _expect_own(self, func: Any, name: str, named: Mapping[str, Any]) -> None:
        for x in _written(func, named):
            if x.untyped_storage().data_ptr() in self._given:
                self._refuse(
                    name,
                    "writes into a tensor that it was given; compute a new one, such as "
                    "`x = x + 1` instead of `x += 1`",
                    instead="",
                )

    def _expect_whole(self, func: Any, name: str, named: Mapping[str, Any]) -> None:
        """A view that was taken before its memory was filled with cells has all of them."""
        for x in _written(func, named):
            whole = self._filled.get(x.untyped_storage().data_ptr(), x)
            if self._keeps_space(whole.shape) and not self._keeps_space(x.shape):
                self._refuse(name, "writes into a part of the grid")

    def _keeps_space(self, shape: torch.Size) -> bool:
        """Whether every side of the grid occurs once."""
        if shape not in self._known:
            cells = math.prod(shape)
            self._known[shape] = cells > 0 and all(
                cells % p == 0 and cells // p % p for p in self._primes
            )
        return self._known[shape]

    def _expect_no_pattern(self, name: str, named: Mapping[str, Any]) -> None:
        """Constants must not differ from cell to cell."""
        for x in _flat(_read(name, named).values()):
            if not isinstance(x, Tensor) or self._holds(x):
                continue
            for axis in range(x.ndim):
                if x.shape[axis] > 1 and self._carries(x.shape[axis]):
                    first = x.narrow(axis, 0, 1)
                    if not torch.equal(x, first.expand_as(x)):
                        self._refuse(
                            name,
                            "uses a tensor that was made inside the step and "
                            "differs from cell to cell",
                        )

    def _carries(self, n: int) -> bool:
        return any(n % p == 0 for p in self._primes)

    def _refuse(self, name: str, what: str, instead: str = _INSTEAD) -> NoReturn:
        raise ArgumentError(
            f"{self._step} cannot run on a grid: `{name}` {said_place(_place())} {what}."
            + (f" {instead}" if instead else "")
        )


class HostReads(TorchFunctionMode):
    """Watches the calls of a step that torch does not see as operations.

    Arguments:
        operations: Those of the same step.
    """

    def __init__(self, operations: Operations) -> None:
        super().__init__()
        self._operations = operations

    def __torch_function__(
        self,
        func: Any,
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        self._operations.expect_no_read(
            getattr(func, "__name__", ""), args[0] if args else None
        )
        return func(*args, **(kwargs or {}))


class _Kind(NamedTuple):
    """Facts about an operation, kept because they are asked for often."""

    name: str
    arguments: tuple[str, ...]
    pointwise: bool
    random: bool
    mutable: bool


@cache
def _kind(func: Any) -> _Kind:
    name, tags = func._schema.name.removeprefix("aten::"), func.tags
    return _Kind(
        name,
        tuple(argument.name for argument in func._schema.arguments),
        torch.Tag.pointwise in tags or name in _POINTWISE,
        torch.Tag.nondeterministic_seeded in tags,
        func._schema.is_mutable,
    )


def _is_whole(name: str, named: Mapping[str, Any], x: Tensor, axis: int) -> bool:
    """Whether a slice takes everything, as `x[..., :]` does."""
    if name != "slice":
        return False
    start, end, step = (named.get(key) for key in ("start", "end", "step"))
    return start in (None, 0) and (end is None or end >= x.shape[axis]) and step in (None, 1)


def _written(func: Any, named: Mapping[str, Any]) -> list[Tensor]:
    """The tensors that an operation writes into."""
    infos = [(a.name, a.alias_info) for a in func._schema.arguments]
    written = [named.get(name) for name, info in infos if info is not None and info.is_write]
    return [x for x in _flat(written) if isinstance(x, Tensor)]


def _read(name: str, named: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments without what is overwritten unread."""
    overwritten = {"copy_": "self", "fill_": "self", "zero_": "self"}.get(name, "out")
    return {key: x for key, x in named.items() if key != overwritten}


def _checksum(x: Tensor) -> str:
    plain = x.detach().cpu().contiguous().flatten().view(torch.uint8)
    return hex(crc32(plain.numpy().tobytes()))


def _flat(values: Any) -> list[Any]:
    found: list[Any] = []
    for value in values:
        found.extend(_flat(value) if isinstance(value, list | tuple) else [value])
    return found


def _place() -> Place:
    """The file and the line of the step that an operation belongs to."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith(_TORCH) and file not in _ENGINE:
            return file, frame.f_lineno
        frame = frame.f_back
    return "", 0


def said_place(place: Place) -> str:
    """A location as text, with the line itself."""
    file, line = place
    text = linecache.getline(file, line).strip()
    return f"in line {line} of {Path(file).name}" + (f" (`{text}`)" if text else "")
