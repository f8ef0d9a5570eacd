"""Static inputs of any box of a grid, made where they are needed."""

from collections.abc import Mapping

import torch
from torch import Tensor

from hotgrid.cluster import Block, take
from hotgrid.config import logger
from hotgrid.grid.model import (
    GridWindow,
    Model,
    State,
    given_tensors,
    in_window,
    named_tensors,
    window_on,
    window_shape,
)

# A whole grid that takes less is not worth a notice.
_WORTH_A_NOTICE = 1 << 28


class PartInputs:
    """The static inputs of a model, as they are kept, for one box after the other.

    Those of a model that is not `windowed` are made once, for the whole grid, and kept.

    Arguments:
        model: Whose inputs they are.
        replaced: Inputs of the whole grid that replace the model's own, by name.
        size: The grid.
        device: Where they are kept.
        storage: The floating type that they are kept in.
    """

    def __init__(
        self,
        model: Model,
        replaced: Mapping[str, Tensor],
        size: tuple[int, ...],
        device: torch.device,
        storage: torch.dtype,
    ) -> None:
        self._model, self._replaced, self._size = model, replaced, size
        self._device, self._storage = device, storage
        self._whole: State | None = None
        named_tensors("inputs", model, model.inputs, replaced, size)

    def __call__(self, block: Block) -> State:
        """Every input of a box, `[components, *block.size]`, a copy of its own."""
        if self._whole is None:
            # Where cells are packed into words, a box of words is not one of cells.
            able = self._model.windowed and block.whole == self._size
            size = window_on(block, windowed=able)
            if isinstance(size, GridWindow):
                made = self._static(size)
                if all(in_window(x, size) is x for x in made.values()):
                    return self._kept(made, size)
            whole = self._kept(self._static(self._size), self._size)
            if block.size == block.whole and not any(block.offset):
                return whole
            self._whole = whole
        return {name: take(x, block) for name, x in self._whole.items()}

    def _static(self, size: tuple[int, ...]) -> State:
        return given_tensors(f"{type(self._model).__name__}.static", self._model.static(size))

    def _kept(self, static: State, size: tuple[int, ...]) -> State:
        model, cells = self._model, window_shape(size)
        known = {name: in_window(x, size) for name, x in {**static, **self._replaced}.items()}
        fixed = named_tensors("inputs", model, model.inputs, known, cells, whole=True)
        return {
            each.name: fixed[each.name]
            .detach()
            .to(self._device, each.dtype or self._storage, copy=True)
            for each in model.inputs
        }


def whole_block(size: tuple[int, ...]) -> Block:
    """All cells of a grid."""
    return Block((0,) * len(size), tuple(size), tuple(size))


def start_window(
    model: Model, running: Model, own: Block, size: tuple[int, ...]
) -> tuple[int, ...]:
    """The size that an initial state is made for: a window on the cells of a rank, or all.

    Arguments:
        model: The model.
        running: The model that stores its cells.
        own: The cells of the rank, as they are stored.
        size: The grid, in cells as users see them.
    """
    if not (model.windowed and running.splits):
        return size
    ratio = [n // m for n, m in zip(size, own.whole, strict=True)]
    offset, cells = (
        tuple(n * r for n, r in zip(each, ratio, strict=True))
        for each in (own.offset, own.size)
    )
    return window_on(Block(offset, cells, size), windowed=True)


def note_whole(model: Model, size: tuple[int, ...]) -> None:
    """Say that every rank makes a whole grid, where that is large."""
    needed = model.initial_bytes(size)
    if needed < _WORTH_A_NOTICE:
        return
    logger("cluster").warning(
        "every rank makes the initial state of %s whole, which takes %.1f GB, and keeps its "
        "part; with `windowed = True` a model makes the part alone (see the guide to grids)",
        type(model).__name__,
        needed / 1e9,
    )
