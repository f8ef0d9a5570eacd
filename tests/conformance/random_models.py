"""Random models, and their steps once more in plain NumPy: two implementations of one
definition.

A recipe is a tree of operations for every component of every field. `RandomModel` reads it
through handles, as a user would write a step. `slow_steps` reads it with whole NumPy arrays
and index arithmetic, and shares no code with the engine.
"""

import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from hotgrid.grid import Field, Input, Model, Parameter

Tree = tuple[Any, ...]
Box = tuple[range, ...]
FLOAT, BYTE = torch.float32, torch.uint8


@dataclass(frozen=True)
class Kind:
    """A field or an input: components, type, and what is beyond the ends."""

    components: int
    dtype: torch.dtype
    boundary: Any = "periodic"


@dataclass(frozen=True)
class Recipe:
    """A random model.

    Attributes:
        size: The grid.
        radius: How far it looks.
        fields: Its fields.
        inputs: Its inputs.
        trees: For every field a tree for each component.
        whole: Whether a field is read with all its components at once.
    """

    size: tuple[int, ...]
    radius: int
    fields: tuple[Kind, ...]
    inputs: tuple[Kind, ...]
    trees: tuple[tuple[Tree, ...], ...]
    whole: bool


def recipe(seed: int) -> Recipe:
    """The random model of a seed."""
    draw = random.Random(seed)
    rank = draw.choice([1, 2, 2, 2, 3])
    radius = draw.choice([1, 1, 2] if rank == 3 else [1, 1, 2, 3])
    size = tuple(draw.randint(6, 9) if rank == 3 else draw.randint(8, 15) for _ in range(rank))
    boundaries = _Boundaries(seed, rank)
    draw.choice(range(4))
    fields = tuple(
        Kind(draw.choice([1, 1, 2, 3]), draw.choice([FLOAT, FLOAT, FLOAT, BYTE]), each)
        for each in itertools.islice(boundaries, draw.randint(1, 4))
    )
    inputs = tuple(
        Kind(draw.choice([1, 1, 2]), draw.choice([FLOAT, BYTE]))
        for _ in range(draw.choice([0, 0, 1, 2]))
    )
    made = _Trees(draw, rank, radius, fields, inputs)
    trees = tuple(
        tuple(made.tree(f.dtype, draw.randint(2, 4)) for _ in range(f.components))
        for f in fields
    )
    return Recipe(size, radius, fields, inputs, trees, draw.random() < 0.4)


class _Boundaries:
    """Boundaries of fields that join the same ends, as a mesh needs it."""

    def __init__(self, seed: int, rank: int) -> None:
        self._draw = random.Random(f"boundaries {seed}")
        self._way = self._draw.choice(["periodic", "alike", "faces"])
        self._joined = [self._draw.random() < 0.3 for _ in range(rank)]

    def __iter__(self) -> Iterator[Any]:
        draw, kinds = self._draw, (0.0, 1.0, "neumann", "mirror")
        while True:
            if self._way == "periodic":
                yield "periodic"
            elif self._way == "alike":
                yield draw.choice(kinds)
            else:
                yield tuple(
                    "periodic" if joined else (draw.choice(kinds), draw.choice(kinds))
                    for joined in self._joined
                )


class _Trees:
    """Trees of operations whose results keep in bounds."""

    def __init__(self, draw: random.Random, rank: int, radius: int, fields, inputs) -> None:
        self._draw, self._rank, self._radius = draw, rank, radius
        self._kinds = {"field": fields, "input": inputs}

    def tree(self, dtype: torch.dtype, depth: int) -> Tree:
        draw = self._draw
        if depth == 0:
            return self._leaf(dtype)
        names = ["add", "sub", "mul", "min", "max", "where"]
        names += ["div", "square", "abs"] if dtype == FLOAT else ["and", "or", "xor", "mod"]
        name = draw.choice(names)
        count = {"where": 4, "abs": 1, "square": 1, "mod": 1}.get(name, 2)
        extra = (draw.choice([2, 3, 5, 7]),) if name == "mod" else ()
        return (name, *extra, *[self.tree(dtype, depth - 1) for _ in range(count)])

    def _leaf(self, dtype: torch.dtype) -> Tree:
        draw = self._draw
        found = [
            (what, k, c)
            for what, kinds in self._kinds.items()
            for k, kind in enumerate(kinds)
            for c in range(kind.components)
            if dtype == FLOAT or kind.dtype == dtype
        ]
        choice = draw.random()
        if not found or choice < 0.1:
            return ("const", draw.randint(0, 7) if dtype == BYTE else draw.randint(-16, 16) / 8)
        if dtype == FLOAT and choice < 0.2:
            return ("param",)
        reach = range(-self._radius, self._radius + 1)
        return (*draw.choice(found), tuple(draw.choice(reach) for _ in range(self._rank)))


class RandomModel(Model):
    """The model of a recipe, written through handles."""

    rate = Parameter(0.625)

    def __init__(self, made: Recipe) -> None:
        super().__init__()
        self.made = made
        self.radius = made.radius
        self.ranks = (len(made.size),)
        self.size = made.size
        self.fields = tuple(
            Field(f"u{k}", f.components, f.dtype if f.dtype == BYTE else None, f.boundary)
            for k, f in enumerate(made.fields)
        )
        self.inputs = tuple(
            Input(f"w{k}", i.components, i.dtype if i.dtype == BYTE else None)
            for k, i in enumerate(made.inputs)
        )

    def initial(self, size, generator):
        return {
            f"u{k}": torch.from_numpy(_random_cells(kind, size, generator.initial_seed(), k))
            for k, kind in enumerate(self.made.fields)
        }

    def static(self, size):
        return {
            f"w{k}": torch.from_numpy(_random_cells(kind, size, 99, k))
            for k, kind in enumerate(self.made.inputs)
        }

    def step(self, state, inputs, params):
        read = _Handles(self.made, state, inputs, params)
        result = {}
        for k, trees in enumerate(self.made.trees):
            dtype = self.made.fields[k].dtype
            planes = [read.bounded(read.value(tree, dtype), dtype) for tree in trees]
            stacked = self.made.whole and len(planes) > 1
            result[f"u{k}"] = torch.stack(planes) if stacked else planes
        return result


class _Handles:
    """A recipe read with torch."""

    def __init__(self, made: Recipe, state, inputs, params) -> None:
        self._made, self._params = made, params
        self._handles = {"field": state, "input": inputs}
        some = state["u0"].part(0).here
        self._like = torch.zeros_like(some, dtype=FLOAT)

    def value(self, tree: Tree, dtype: torch.dtype):
        name, *rest = tree
        if name in ("field", "input"):
            k, c, offset = rest
            handle = self._handles[name][f"{'u' if name == 'field' else 'w'}{k}"]
            seen = handle[offset][c] if self._made.whole and len(handle) > 1 else (
                handle.part(c)[offset])  # fmt: skip
            return seen if seen.dtype == dtype else seen.to(dtype)
        if name == "const":
            return torch.full_like(self._like, rest[0], dtype=dtype)
        if name == "param":
            return self._params["rate"] + self._like
        if name == "mod":
            return self.value(rest[1], dtype) % rest[0]
        parts = [self.value(each, dtype) for each in rest]
        return _TORCH[name](*parts)

    @staticmethod
    def bounded(x, dtype: torch.dtype):
        return x / (1 + x.abs()) if dtype == FLOAT else x


_TORCH = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / (1 + b * b),
    "min": torch.minimum,
    "max": torch.maximum,
    "square": lambda a: a * a,
    "abs": torch.abs,
    "where": lambda a, b, c, d: torch.where(a < b, c, d),
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
}

_NUMPY = {
    **_TORCH,
    "div": lambda a, b: a / (np.float32(1) + b * b),
    "min": np.minimum,
    "max": np.maximum,
    "abs": np.abs,
    "where": lambda a, b, c, d: np.where(a < b, c, d),
}


def slow_steps(made: Recipe, steps: int, seed: int = 0) -> list[np.ndarray]:
    """Every field after a number of steps, by NumPy alone."""
    fields, inputs = slow_start(made, seed)
    for _ in range(steps):
        fields = slow_step(made, fields, inputs, tuple(range(n) for n in made.size))
    return [x[0] if len(x) == 1 else x for x in fields]


def slow_start(made: Recipe, seed: int = 0) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Every field and every input at the start, `[components, *size]`."""

    def cells(kinds: tuple[Kind, ...], seed: int) -> list[np.ndarray]:
        return [
            _random_cells(kind, made.size, seed, k).reshape(kind.components, *made.size)
            for k, kind in enumerate(kinds)
        ]

    return cells(made.fields, seed), cells(made.inputs, 99)


def slow_step(made: Recipe, fields, inputs, box: Box) -> list[np.ndarray]:
    """The cells of a box of every field after a step from whole fields."""
    return [
        np.stack([_slow_plane(made, tree, kind, fields, inputs, box) for tree in trees])
        for trees, kind in zip(made.trees, made.fields, strict=True)
    ]


def _slow_plane(made: Recipe, tree: Tree, kind: Kind, fields, inputs, box: Box) -> np.ndarray:
    dtype = np.float32 if kind.dtype == FLOAT else np.uint8
    x = _slow_value(made, tree, dtype, fields, inputs, box)
    return x / (np.float32(1) + np.abs(x)) if kind.dtype == FLOAT else x


def _slow_value(made: Recipe, tree: Tree, dtype, fields, inputs, box: Box) -> np.ndarray:
    name, *rest = tree
    if name in ("field", "input"):
        k, c, offset = rest
        x = (fields if name == "field" else inputs)[k][c]
        boundary = made.fields[k].boundary if name == "field" else "periodic"
        return _seen(x, offset, boundary, box).astype(dtype)
    if name in ("const", "param"):
        return np.full([len(cells) for cells in box], rest[0] if rest else 0.625, dtype)
    if name == "mod":
        return _slow_value(made, rest[1], dtype, fields, inputs, box) % dtype(rest[0])
    parts = [_slow_value(made, each, dtype, fields, inputs, box) for each in rest]
    return _NUMPY[name](*parts)


def _seen(x: np.ndarray, offset: tuple[int, ...], boundary: Any, box: Box) -> np.ndarray:
    """The neighbour of every cell of a box, by its index along each axis in turn."""
    axes = boundary if isinstance(boundary, tuple) else [boundary] * x.ndim
    for axis, (o, face) in enumerate(zip(offset, axes, strict=True)):
        low, high = face if isinstance(face, tuple) else (face, face)
        n, cells = x.shape[axis], box[axis]
        places = [_place(k + o, n, low if k + o < 0 else high) for k in cells]
        numbers = [x.dtype.type(high if k + o >= n else low) if at is None else 0
                   for k, at in zip(cells, places, strict=True)]  # fmt: skip
        along = (slice(None), *[None] * (x.ndim - 1 - axis))
        found = np.take(x, [0 if at is None else at for at in places], axis)
        lost = np.array([at is None for at in places])[along]
        x = np.where(lost, np.array(numbers, x.dtype)[along], found)
    return x


def _place(at: int, n: int, face: Any) -> int | None:
    """The cell that is seen at a place; None where it is a number."""
    if 0 <= at < n:
        return at
    if face == "periodic":
        return at % n
    if face == "neumann":
        return -1 - at if at < 0 else 2 * n - 1 - at
    if face == "mirror":
        return -at if at < 0 else 2 * n - 2 - at
    return None


def _random_cells(kind: Kind, size: tuple[int, ...], seed: int, k: int) -> np.ndarray:
    shape = (kind.components, *size) if kind.components > 1 else size
    draw = np.random.default_rng([seed, k])
    if kind.dtype == BYTE:
        return draw.integers(0, 256, shape, dtype=np.uint8)
    return draw.random(shape, dtype=np.float32) * 2 - 1
