"""Weights that are a function of their names and shapes: the same wherever they are made.

`make_timm_logits.py` gives them to timm, and tests give them to hotgrid. They are uniform
random numbers, whose bits do not depend on the machine, times a scale that keeps the
activations of deep models near 1.
"""

import math
import zlib
from collections.abc import Iterable, Mapping

import torch
from torch import Tensor

# The middle and the width, by the end of a name; others go by their shape.
_BY_NAME = {
    "running_mean": (0.0, 0.125),
    "running_var": (1.0, 0.5),
    "gamma": (0.5, 0.125),
    "logit_scale": (2.25, 0.125),
    "relative_position_bias_table": (0.0, 0.5),
    "pos_embed": (0.0, 0.25),
    "cls_token": (0.0, 0.25),
    "bias": (0.0, 0.125),
}


def uniform(name: str, shape: Iterable[int]) -> Tensor:
    """Numbers from -1 to 1 that a name and a shape decide."""
    generator = torch.Generator().manual_seed(zlib.crc32(name.encode()))
    return torch.rand(tuple(shape), generator=generator) * 2 - 1


def named_weights(shapes: Mapping[str, Iterable[int]]) -> dict[str, Tensor]:
    """A weight for each name."""
    made: dict[str, Tensor] = {}
    for name, sizes in shapes.items():
        shape = tuple(sizes)
        known = [each for end, each in _BY_NAME.items() if name.endswith(end)]
        if name.endswith("num_batches_tracked"):
            made[name] = torch.zeros(shape, dtype=torch.int64)
        elif known:
            middle, width = known[0]
            made[name] = middle + width * uniform(name, shape)
        elif len(shape) < 2:
            made[name] = 1 + 0.125 * uniform(name, shape)
        else:
            made[name] = math.sqrt(3 / math.prod(shape[1:])) * uniform(name, shape)
    return made


def named_image(size: int, channels: int = 3, batch: int = 2) -> Tensor:
    """Images for models made of these weights."""
    return 2 * uniform(f"images of {size}", (batch, channels, size, size))
