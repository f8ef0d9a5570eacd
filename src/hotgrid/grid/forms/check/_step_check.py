"""The check of a step before it first runs: every cell from its own neighbours alone.

Forms lay a grid out in different ways: whole, in flat pieces, in strips, in blocks of a
mesh. They agree only if a step treats every cell alike and reads other cells only through
its handles. So a step is run once on a small trial grid, and every operation is
checked. Then it is run again on some of those cells in another order, which must change
nothing.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain
from numbers import Number
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary

from hotgrid.errors import ArgumentError
from hotgrid.grid.forms._form import Setting, stepped
from hotgrid.grid.forms._roll import shifting
from hotgrid.grid.forms.kernel._tape import same_bits
from hotgrid.grid.model import Field, Input, Look, Model, State, parameters_read, said_step

from ._held import held
from ._operations import HostReads, Noted, Operations, said_place


class _Sides(NamedTuple):
    """Sides of trial grids: of a plane or a box, of a line, and of flat cells."""

    box: tuple[int, ...]
    line: int
    flat: int


# A side of the trial grid is identified by its prime, whatever is stacked or flattened.
# The other cells are flat, as those of the padded form. A step may stack as many tensors
# by chance, so what the first primes refuse is tried with others.
# A line is longer: `mixed` adds cells to fewer than it can multiply.
_SIDES = (_Sides((29, 31, 37), 211, 499), _Sides((41, 43, 47), 223, 503))
# Rounding may push a number over a threshold; what is not local differs nearly everywhere.
_MOST_DIFFERENT = 0.02

_CHECKED: Any = WeakIdKeyDictionary()
_CONSTANTS: Any = WeakIdKeyDictionary()
# By class: models of it that hold the same, so that one trial serves them all, and the
# parameters that its step reads from `self`.
_ALIKE: Any = WeakKeyDictionary()
_MOST_ALIKE = 64


def check_step(owner: Model, setting: Setting, state: State) -> None:
    """Refuse a step that is not the same pure function of the neighbours for every cell.

    Arguments:
        owner: The model as the user made it; it is checked once, and again when its
            attributes were changed.
        setting: What is run.
        state: The state it starts from, `[*batch, components, *space]`; the trial takes its
            numbers from there.

    Raises:
        ArgumentError: The step is not local, writes into its arguments, or changes
            the model. The message names operation and line.
    """
    chosen = {name: x for name, x in vars(owner).items() if not name.startswith("_")}
    kind = (setting.rank, setting.dtype, setting.device, type(setting.model))
    key = (*kind, _snapshot(chosen))
    if key in _CHECKED.setdefault(owner, set()):
        return
    read = _tried(owner, kind, setting, state)
    _CHECKED[owner].add(key)
    _CONSTANTS[owner] = _CONSTANTS.get(owner, frozenset()) | read


def _tried(owner: Model, kind: Any, setting: Setting, state: State) -> frozenset[str]:
    """Make a trial, if none was made with a model that holds the same.

    Returns:
        The parameters that the step reads from `self`.
    """
    alike = _ALIKE.setdefault(type(owner), {})
    same = (*kind, type(owner).step.__code__, held(owner))
    if same in alike:
        return alike[same]
    setting = replace(setting, model=setting.model.for_trial())
    with torch.no_grad(), parameters_read(setting.model) as read:
        try:
            _Trial(setting, state, _SIDES[0]).make()
        except ArgumentError as refused:
            try:
                _Trial(setting, state, _SIDES[1]).make()
            except ArgumentError:
                raise refused from None
    if len(alike) >= _MOST_ALIKE:
        alike.clear()
    alike[same] = frozenset(read)
    return alike[same]


def constants_of(owner: Model) -> frozenset[str]:
    """The parameters that a checked step reads from `self`: compiled steps hold them fixed."""
    return _CONSTANTS.get(owner, frozenset())


class _Trial:
    """A step on a small grid, then on some of its cells in another order."""

    def __init__(self, setting: Setting, state: State, sides: _Sides) -> None:
        model = setting.model
        self._model = model
        self._name = said_step(model)
        self._size = sides.box[: setting.rank] if setting.rank > 1 else (sides.line,)
        self._other = (*[1] * (setting.rank - 1), sides.flat)
        floats = any((field.dtype or setting.dtype).is_floating_point for field in model.fields)
        self._most_different = _MOST_DIFFERENT if floats else 0.0
        self._setting = replace(
            setting,
            size=self._size,
            batch=(),
            storage=setting.dtype,
            compiled=False,
            inputs={},
            params={name: x.clone() for name, x in setting.params.items()},
        )
        generator = torch.Generator().manual_seed(0)
        self._order = torch.randint(
            math.prod(self._size), (math.prod(self._other),), generator=generator
        ).to(setting.device)
        sampled = _Sampled(setting, self._size, generator)
        self._fields = {f.name: sampled.like(f, state[f.name]) for f in model.fields}
        self._inputs = {i.name: sampled.like(i, setting.inputs[i.name]) for i in model.inputs}

    def make(self) -> None:
        """Make both steps and compare them."""
        kinds = (*self._model.fields, *self._model.inputs)
        rolled = {kind.name: shifting(kind) for kind in kinds}
        before = {name: _snapshot(x) for name, x in vars(self._model).items()}
        params = dict(self._setting.params)
        first, noted = self._made(rolled, self._size)
        self._expect_unchanged(before)
        self._expect_same_parameters(params)
        again = self._stepped(rolled, self._size)
        pairs = zip(chain(*first), chain(*again), strict=True)
        if not all(same_bits(a, b) for a, b in pairs):
            raise ArgumentError(
                f"{self._name} returns something else when run again from the same state. "
                "It must be a pure function of what it is given; keep what changes in a `Field`"
            )
        shuffled = {name: self._shuffling(look) for name, look in rolled.items()}
        second, again = self._made(shuffled, self._other)
        for (name, numbers, place), (_, others, _) in zip(noted, again, strict=False):
            if numbers != others:
                raise ArgumentError(
                    f"{self._name} depends on the shape of its handles' tensors: `{name}` "
                    f"{said_place(place)} has the numbers {numbers} and {others} on grids of "
                    "different shape. Forms store the grid in different ways; pass its size "
                    "as a `Parameter`, and what differs from cell to cell as an `Input`"
                )
        for name, a, b in zip(self._fields, first, second, strict=True):
            self._compare(name, a, b)

    def _made(
        self, looks: Mapping[str, Look], size: Sequence[int]
    ) -> tuple[list[list[Tensor]], list[Noted]]:
        params = self._setting.params
        given = [*self._fields.values(), *self._inputs.values(), *params.values()]
        watch = Operations(self._name, [n for n in size if n > 1], given)
        looks = {name: watch.giving(look) for name, look in looks.items()}
        try:
            with watch, HostReads(watch):
                planes = self._stepped(looks, size)
        except (RuntimeError, IndexError) as problem:
            raise ArgumentError(
                f"{self._name} failed on a trial grid {tuple(size)}: {problem}; "
                "a step must work on grids of any size"
            ) from problem
        watch.expect_unwritten()
        return planes, watch.noted

    def _stepped(self, looks: Mapping[str, Look], size: Sequence[int]) -> list[list[Tensor]]:
        setting = replace(self._setting, size=tuple(size))
        return stepped(setting, self._fields, self._inputs, setting.params, looks)

    def _shuffling(self, look: Look) -> Look:
        def shuffled(plane: Tensor, offset: tuple[int, ...]) -> Tensor:
            return look(plane, offset).flatten()[self._order].view(self._other)

        return shuffled

    def _compare(self, name: str, first: list[Tensor], second: list[Tensor]) -> None:
        for plane, other in zip(first, second, strict=True):
            wanted = plane.flatten()[self._order].view(self._other)
            if (~_alike(other, wanted)).double().mean() > self._most_different:
                raise ArgumentError(
                    f"{self._name} is not local: the new `{name}` of a cell changes with the "
                    "order of the other cells. A step may read other cells only through its "
                    "handles, such as `u[0, 1]`"
                )

    def _expect_same_parameters(self, before: Mapping[str, Tensor]) -> None:
        after = self._setting.params
        for name in {**before, **after}:
            if before.get(name) is not after.get(name):
                raise ArgumentError(
                    f"{self._name} assigns to `params[{name!r}]`. All steps share `params`; "
                    "store the new number in a variable"
                )

    def _expect_unchanged(self, before: Mapping[str, object]) -> None:
        after = {name: _snapshot(x) for name, x in vars(self._model).items()}
        for name in {**before, **after}:
            lazy = isinstance(getattr(type(self._model), name, None), cached_property)
            if before.get(name) != after.get(name) and not lazy:
                raise ArgumentError(
                    f"{self._name} changes `self.{name}`. A step is compiled once and run many "
                    "times, so it must not change its model; store what changes in a `Field`"
                )


class _Sampled:
    """Numbers for the trial grid, like those of the real one."""

    def __init__(
        self, setting: Setting, size: tuple[int, ...], generator: torch.Generator
    ) -> None:
        self._setting = setting
        self._size = size
        self._generator = generator

    def like(self, kind: Field | Input, real: Tensor) -> Tensor:
        """Numbers of a real field at random, `[components, *trial]`.

        Floats get a little noise. Integers are drawn from those that occur, the rare ones as
        often as the others: most cells of an automaton may be dead.
        """
        rank = self._setting.rank
        cells = real.reshape(-1, kind.components, math.prod(real.shape[-rank:]))[0]
        count = math.prod(self._size)
        drawn = self._drawn(cells.shape[-1], (count,)).to(cells.device)
        found = cells[:, drawn].to(kind.dtype or self._setting.dtype)
        if found.is_floating_point():
            noise = torch.rand(found.shape, generator=self._generator).to(found)
            found = found.nan_to_num(0.0, 1.0, -1.0) + 0.1 * noise
        else:
            some = cells.flatten()[: 1 << 20].unique()
            some = torch.cat([some, (some + 1).to(some)]) if len(some) == 1 else some
            found = some[self._drawn(len(some), tuple(found.shape)).to(some.device)].to(found)
        return found.unflatten(-1, self._size)

    def _drawn(self, count: int, shape: tuple[int, ...]) -> Tensor:
        return torch.randint(count, shape, generator=self._generator)


def _alike(found: Tensor, wanted: Tensor) -> Tensor:
    """Where two results are equal but for rounding."""
    if not wanted.is_floating_point():
        return found == wanted
    near = torch.finfo(wanted.dtype).eps ** 0.5
    return torch.isclose(found, wanted, rtol=near, atol=near, equal_nan=True)


def _snapshot(value: Any, depth: int = 3) -> Any:
    """The contents of a value, in a form that can be compared later and used as a key."""
    if isinstance(value, Tensor | np.ndarray):
        return id(value), value._version if isinstance(value, Tensor) else value.tobytes()
    if value is None or isinstance(value, str | bytes | Number):
        return repr(value)
    if isinstance(value, Mapping) and depth:
        return tuple((repr(k), _snapshot(x, depth - 1)) for k, x in value.items())
    if isinstance(value, list | tuple | set | frozenset) and depth:
        return type(value).__name__, tuple(_snapshot(x, depth - 1) for x in value)
    inside = getattr(value, "__dict__", None)
    if depth and isinstance(inside, dict) and not callable(value):
        return id(value), _snapshot(inside, depth - 1)
    return id(value)
