"""Normal numbers in place of a caller's, for a trial whose winner is kept.

What the first caller happens to bring must not decide for all later ones: numbers near the
largest one, outliers, or NaN would exclude a candidate that is the fastest for usual numbers.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

_CACHE_LINE = 64  # bytes; kernels may care how far from one a tensor begins
_MOST_TURNS = 32  # sets of arguments; those of a few MiB are in the cache in use as well


def normal_inputs(arguments: Sequence[Any]) -> tuple[Any, ...]:
    """Return arguments of the same kind with normal numbers in their floating tensors.

    They have the same shapes, strides, types and places, and begin as far from a cache
    line; a tensor that is given twice is one again. Whole numbers stay, since they may be
    indices or codes. Where memory is too small for a second set, the arguments are used
    as they are. The generator of the process is left alone.
    """
    made: dict[int, Tensor] = {}
    try:
        return tuple([_in_place_of(each, made) for each in arguments])
    except RuntimeError:
        return tuple(arguments)


def _in_place_of(value: Any, made: dict[int, Tensor]) -> Any:
    if isinstance(value, tuple | list):
        return type(value)([_in_place_of(each, made) for each in value])
    if not isinstance(value, Tensor) or not (value.is_floating_point() or value.is_complex()):
        return value
    if id(value) not in made:
        made[id(value)] = _normal(value, seed=len(made))
    return made[id(value)]


def _normal(x: Tensor, seed: int) -> Tensor:
    if x.numel() == 0:
        return x
    # Of one block, so that an expanded tensor is one again.
    span, size = _span(x), x.element_size()
    start = x.data_ptr() % _CACHE_LINE // size
    draw = torch.Generator(x.device).manual_seed(seed)
    drawn = x.dtype if size > 1 else torch.float32  # torch draws none of one byte
    block = torch.randn(start + span, generator=draw, dtype=drawn, device=x.device)
    like = block.to(x.dtype).as_strided(x.shape, x.stride(), start)
    return like.conj() if x.is_conj() else like


def in_turn(arguments: Sequence[Any], held: int) -> list[tuple[Any, ...]]:
    """Return copies of arguments, together at least twice the size of the cache.

    One set that is used again at once would be found there, which the weights of a network are
    not. So small ones that it takes more than 32 sets are, and stay alone; where memory does
    not suffice there are fewer sets.
    """
    tensors = {id(x): x for x in arguments if isinstance(x, Tensor) and x.numel()}
    all_bytes = sum(_span(x) * x.element_size() for x in tensors.values())
    wanted = 1 + 2 * held // all_bytes if all_bytes else 1
    sets = [tuple(arguments)]
    try:
        while wanted <= _MOST_TURNS and len(sets) < wanted:
            made: dict[int, Tensor] = {}
            sets.append(tuple([_copied(each, made) for each in arguments]))
    except RuntimeError:
        pass
    return sets


def copies(arguments: Sequence[Any]) -> tuple[Any, ...]:
    """Return arguments with tensors of their own; the same where memory is too small."""
    made: dict[int, Tensor] = {}
    try:
        return tuple([_copied(each, made) for each in arguments])
    except RuntimeError:
        return tuple(arguments)


def _span(x: Tensor) -> int:
    """How many elements lie between the first and the last, these included."""
    return 1 + sum((n - 1) * step for n, step in zip(x.shape, x.stride(), strict=True))


def _copied(value: Any, made: dict[int, Tensor]) -> Any:
    if not isinstance(value, Tensor) or not value.numel() or value.is_conj() or value.is_neg():
        return value
    if id(value) not in made:
        span, start = _span(value), value.data_ptr() % _CACHE_LINE // value.element_size()
        block = value.new_empty(start + span)
        block[start:].copy_(value.as_strided((span,), (1,)))
        made[id(value)] = block.as_strided(value.shape, value.stride(), start)
    return made[id(value)]
