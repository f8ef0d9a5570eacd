"""A traced step, replayed plane by plane."""

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hotgrid.tensors._torch_private import (
    OpOverload,
    tree_flatten,
    tree_map,
    tree_unflatten,
    without_dispatch_modes,
)

from ._plane_arrays import MOVES, NotInPlanesError, PlaneArray, aligned

MOST_NUMBERS = 800
"""Tensors of more numbers are data, not constants; a matrix over 27 components has 729."""
_REDUCTIONS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "sum": torch.add,
    "mean": torch.add,
    "prod": torch.mul,
    "amax": torch.maximum,
    "amin": torch.minimum,
    "any": torch.logical_or,
    "all": torch.logical_and,
}
# What planes are shifted with, and joined to what is beyond their edges.
_LOOKING = ("roll", "slice", "flip", "cat", "view", "_unsafe_view", "expand", "clone")
_UNIFORM = {"zeros": 0, "ones": 1, "empty": 0, "full": None}


class _Given:
    """A tensor that a step is called with, or a part of it that is not one plane."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor


@dataclass(frozen=True)
class _Seen(PlaneArray):
    """One plane as a step sees it, with the tensor itself: it may be shifted further."""

    tensor: Tensor


class _Runs:
    """A plane in the shape of a batch, in which it is stored."""

    def __init__(self, array: PlaneArray) -> None:
        self.array = array


class Replay:
    """A traced step, replayed plane by plane.

    Arguments:
        traced: The step as a graph of aten operations.
        shape: The shape of a plane.
        device: Where planes are.
    """

    def __init__(
        self, traced: torch.fx.GraphModule, shape: Sequence[int], device: torch.device
    ) -> None:
        self._traced, self._device = traced, device
        # Steps move dims of size 1 about, so planes do without.
        self._cells = tuple(n for n in shape if n != 1)
        self._tensors: list[Tensor] = []
        self._values: dict[torch.fx.Node, Any] = {}

    def run(self, *args: Tensor) -> None:
        """Make the step; this is what is traced again."""
        given = iter(args)
        for node in self._traced.graph.nodes:
            if node.op == "placeholder":
                x = next(given)
                self._values[node] = self._array(x, ()) if x.ndim == 0 else _Given(x)
            elif node.op == "get_attr":
                x = getattr(self._traced, node.target)
                self._values[node] = self._constant(torch.clone, (x,), {})
            elif node.op == "call_function":
                self._values[node] = self._made(node)

    def _made(self, node: torch.fx.Node) -> Any:
        given: Any = (node.args, dict(node.kwargs))
        found: Any = torch.fx.map_arg(given, self._values.__getitem__)
        func: Any = node.target
        args, kwargs = found[0], dict(found[1])
        if func is operator.getitem:
            return args[0][args[1]]
        if not isinstance(func, OpOverload):
            raise NotInPlanesError
        if torch.Tag.nondeterministic_seeded in func.tags:
            raise NotInPlanesError
        name = func._schema.name.removeprefix("aten::")
        kinds = {type(self._values[x]) for x in node.all_input_nodes}
        wanted = node.meta["val"]
        if name == "copy_" and isinstance(args[0], _Given):
            return self._write(args[0].tensor, args[1])
        if name.removesuffix("_like").removeprefix("new_") in _UNIFORM:
            made = self._uniform(name, func, args, kwargs, wanted)
        elif _Given in kinds and kinds <= {_Given, _Seen, Tensor}:
            made = self._given(func, args, kwargs)
        elif kinds <= {Tensor}:
            made = self._constant(func, args, kwargs)
        elif name.endswith("_"):
            made = self._in_place(name, func, args, kwargs)
        else:
            made = self._applied_or_seen(name, func, args, kwargs, wanted, kinds == {_Seen})
        self._check(made, wanted)
        return made

    def _applied_or_seen(
        self, name: str, func: Any, args: Any, kwargs: Any, wanted: Any, seen: bool
    ) -> Any:
        """Apply an operation, or shift what is seen further, or end with a batch."""
        try:
            return self._applied(name, func, args, kwargs, wanted)
        except NotInPlanesError:
            if seen and name in _LOOKING:
                return self._given(func, args, kwargs)
            if name == "view" and isinstance(args[0], PlaneArray) and args[0].lanes:
                return _Runs(args[0])
            raise

    def _check(self, made: Any, wanted: Any) -> None:
        """Shape and type are those of the trace."""
        if isinstance(made, list):
            for x, y in zip(made, wanted, strict=True):
                self._check(x, y)
        elif isinstance(made, PlaneArray) and (
            made.shape != tuple(wanted.shape) or self._dtype(made) != wanted.dtype
        ):
            raise NotInPlanesError

    def _dtype(self, x: PlaneArray) -> torch.dtype:
        return self._tensors[x.planes.flat[0]].dtype

    def _array(self, x: Tensor, lanes: tuple[int, ...], ndim: int = 0) -> PlaneArray:
        """One tensor for all planes of one."""
        self._tensors.append(x)
        planes = np.full((1,) * ndim, len(self._tensors) - 1)
        return PlaneArray(planes, lanes, self._cells)

    def _given(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Reading a neighbour returns an array once it is one plane."""
        if func._schema.is_mutable:
            raise NotInPlanesError

        def seen(x: Tensor) -> Any:
            if tuple(n for n in x.shape if n != 1) != self._cells:
                return _Given(x)
            array = self._array(x.reshape(self._cells), self._lanes(x.shape), x.ndim)
            # A step must not write into what it is given.
            array.planes.flags.writeable = False
            return _Seen(array.planes, array.lanes, array.cells, x)

        args = tree_map(lambda x: x.tensor if isinstance(x, _Given | _Seen) else x, args)
        made = func(*args, **kwargs)
        return seen(made) if isinstance(made, Tensor) else [seen(x) for x in made]

    def _lanes(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The dims of a shape that run over cells; none where it has none."""
        last = [k for k, n in enumerate(shape) if n != 1][-len(self._cells) :]
        if tuple(shape[k] for k in last) == self._cells:
            return tuple(last)
        if set(shape) & set(self._cells):
            raise NotInPlanesError
        return ()

    def _uniform(
        self, name: str, func: Any, args: Sequence[Any], kwargs: Any, wanted: Tensor
    ) -> Any:
        """A tensor of one number; what is empty may be anything, so it is 0."""
        value = _UNIFORM[name.removesuffix("_like").removeprefix("new_")]
        if value is None:
            value = args[2 if name == "new_full" else 1]
        if isinstance(value, PlaneArray):
            raise NotInPlanesError
        try:
            lanes = self._lanes(wanted.shape)
        except NotInPlanesError:
            if name != "full":
                raise
            # What is seen beyond the edge of a plane.
            return _Given(func(*args, **kwargs))
        if not lanes:
            kind = {"dtype": wanted.dtype, "device": self._device}
            return self._constant(torch.full, (tuple(wanted.shape), value), kind)
        one = torch.full(self._cells, value, dtype=wanted.dtype, device=self._device)
        planes = self._array(one, ()).planes
        sizes = [1 if k in lanes else n for k, n in enumerate(wanted.shape)]
        return PlaneArray(np.broadcast_to(planes, sizes).copy(), lanes, self._cells)

    def _constant(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Compute at once what depends on constants alone."""
        with without_dispatch_modes():
            return func(*args, **kwargs)

    def _numbers(self, x: Any) -> Any:
        """A constant tensor as an array of numbers."""
        if not isinstance(x, Tensor):
            return x
        if x.numel() > MOST_NUMBERS:
            raise NotInPlanesError
        first = len(self._tensors)
        for number in self._constant(lambda: x.flatten().tolist(), (), {}):
            made = torch.full((), number, dtype=x.dtype, device=self._device)
            self._tensors.append(made)
        planes = np.arange(first, len(self._tensors)).reshape(x.shape)
        return PlaneArray(planes, (), self._cells)

    def _applied(self, name: str, func: Any, args: Any, kwargs: Any, wanted: Any) -> Any:
        if name in ("index", "index_select"):
            return self._constant(MOVES[name], args, kwargs)
        args, kwargs = tree_map(self._numbers, (args, kwargs))
        if name == "expand" and not args[0].lanes:
            return self._spread(args[0], wanted.shape)
        if name in MOVES:
            kwargs.pop("memory_format", None)
            return MOVES[name](*args, **kwargs)
        if name in _REDUCTIONS:
            kwargs.pop("dtype", None)
            return self._reduced(name, wanted.dtype, *args, **kwargs)
        if name in ("mm", "bmm"):
            return self._multiplied(*args)
        if name == "_to_copy":
            kwargs = {"dtype": kwargs.get("dtype") or wanted.dtype}
        elif torch.Tag.pointwise not in func.tags:
            raise NotInPlanesError
        return self._pointwise(_quicker(func, args, wanted.dtype), args, kwargs)

    def _spread(self, x: PlaneArray, shape: Sequence[int]) -> PlaneArray:
        """Numbers expanded, over cells too."""
        lanes = self._lanes(shape)
        if lanes:
            x = self._pointwise(lambda each: each.expand(self._cells), (x,), {})
        sizes = [1 if k in lanes else n for k, n in enumerate(shape)]
        return PlaneArray(MOVES["expand"](x, sizes).planes, lanes, self._cells)

    def _pointwise(self, func: Callable[..., Tensor], args: Any, kwargs: Any) -> PlaneArray:
        leaves, spec = tree_flatten((args, kwargs))
        places = [k for k, x in enumerate(leaves) if isinstance(x, PlaneArray)]
        arrays = aligned([leaves[k] for k in places])
        lanes = next((x.lanes for x in arrays if x.lanes), ())
        dims = [leaves[k].planes.ndim for k in places]
        planes = np.empty(arrays[0].planes.shape, np.int64)
        for where in np.ndindex(*planes.shape):
            for k, array, ndim in zip(places, arrays, dims, strict=True):
                x = self._tensors[array.planes[where]]
                # Torch takes the type of a number less seriously than that of a tensor.
                leaves[k] = x.expand(self._cells) if lanes and ndim and not x.ndim else x
            now, named = tree_unflatten(leaves, spec)
            planes[where] = len(self._tensors)
            self._tensors.append(func(*now, **named))
        return PlaneArray(planes, lanes, self._cells)

    def _reduced(
        self,
        name: str,
        dtype: torch.dtype,
        x: PlaneArray,
        dim: int | Sequence[int] | None = None,
        keepdim: bool = False,
    ) -> PlaneArray:
        """Components summed up and the like, the first of them first."""
        dims = [dim] if isinstance(dim, int) else dim
        axes = sorted(x.axis(d) for d in dims or range(x.planes.ndim))
        rest = [k for k in range(x.planes.ndim) if k not in axes]
        work = torch.bool if name in ("any", "all") else dtype
        if dtype in (torch.float16, torch.bfloat16):
            work = torch.float32
        moved = x.planes.transpose([*rest, *axes]).reshape(
            [x.planes.shape[k] for k in rest] + [-1]
        )
        planes = np.empty(moved.shape[:-1], np.int64)
        for where in np.ndindex(*planes.shape):
            parts = [self._tensors[k].to(work) for k in moved[where]]
            total = reduce(_REDUCTIONS[name], parts)
            planes[where] = len(self._tensors)
            self._tensors.append((total / len(parts) if name == "mean" else total).to(dtype))
        if keepdim:
            planes = np.expand_dims(planes, axes)
            return x.moved(planes, x.lanes)
        return x.moved(planes, [rest.index(lane) for lane in x.lanes])

    def _multiplied(self, a: PlaneArray, b: PlaneArray) -> PlaneArray:
        """Matrices, or batches of them, multiplied."""
        rows, columns = MOVES["unsqueeze"](a, -1), MOVES["unsqueeze"](b, -3)
        each = self._pointwise(torch.mul, (rows, columns), {})
        return self._reduced("sum", self._dtype(each), each, -2)

    def _in_place(self, name: str, func: Any, args: Any, kwargs: Any) -> PlaneArray:
        """Run an operation that writes into an array; all its views see that."""
        args, kwargs = tree_map(self._numbers, (args, kwargs))
        target = args[0]
        if not isinstance(target, PlaneArray) or not target.planes.flags.writeable:
            raise NotInPlanesError
        dtype = self._dtype(target)
        if name == "copy_":
            made = args[1]
        elif name in ("fill_", "zero_"):
            value = args[1] if name == "fill_" else 0
            made = (
                self._numbers(torch.tensor(value))
                if not isinstance(value, PlaneArray)
                else value
            )
        elif name == "index_put_":
            made = self._masked(target, *args[1:])
        elif torch.Tag.pointwise in func.tags:
            packet = getattr(torch.ops.aten, name.removesuffix("_"))
            made = self._pointwise(getattr(packet, func._overloadname), args, kwargs)
        else:
            raise NotInPlanesError

        def fitting(x: Tensor) -> Tensor:
            return x.to(dtype).expand(self._cells if target.lanes else ())

        made = aligned([target, self._pointwise(fitting, (made,), {})])[1]
        target.planes[...] = made.planes
        return target

    def _masked(
        self, target: PlaneArray, masks: Sequence[Any], value: PlaneArray, add: bool = False
    ) -> PlaneArray:
        """`x[mask] = number`."""
        if len(masks) != 1 or add or value.planes.ndim:
            raise NotInPlanesError
        mask = masks[0]
        if not isinstance(mask, PlaneArray) or self._dtype(mask) is not torch.bool:
            raise NotInPlanesError
        # A mask of fewer dims counts them from the left.
        if mask.planes.ndim != target.planes.ndim:
            raise NotInPlanesError
        return self._pointwise(torch.where, (mask, value, target), {})

    def _write(self, out: Tensor, value: Any) -> None:
        """The end of a step: a plane into the buffer."""
        value = value.array if isinstance(value, _Runs) else self._numbers(value)
        if not isinstance(value, PlaneArray) or value.planes.size != 1:
            raise NotInPlanesError
        plane = self._tensors[value.planes.flat[0]]
        out.copy_(plane.reshape(out.shape) if value.lanes else plane)


def _quicker(func: Any, args: Sequence[Any], dtype: torch.dtype) -> Callable[..., Tensor]:
    """The same operation, in a way that Inductor makes vectors of.

    It divides whole numbers one by one. Floating numbers with more than twice their bits
    give the same quotients, rounded down.
    """
    work = {1: torch.float32, 2: torch.float64, 4: torch.float64}.get(dtype.itemsize)
    divides = func is torch.ops.aten.remainder.Scalar
    if not divides or work is None or dtype.is_floating_point or dtype is torch.bool:
        return func
    if type(args[1]) is not int or not 0 < args[1] <= torch.iinfo(dtype).max:
        return func

    def remainder(x: Tensor, n: int) -> Tensor:
        wide = x.to(work)
        return (wide - torch.floor(wide / n) * n).to(dtype)

    return remainder
