"""The check that a run is still finite, made where its numbers are read anyway."""

from collections.abc import Mapping

import torch
from torch import Tensor

from hotgrid.errors import UnstableError

_CAUSE = (
    "lower the learning rate (`rate`), or look for rewards and observations of the "
    "environment that are not finite"
)


def expect_finite(step: int, values: Mapping[str, Tensor]) -> None:
    """Refuse values that are not finite.

    Args:
        step: The step at which they were read.
        values: Tensors with a leading axis of seeds, by name.

    Raises:
        UnstableError: One of them is infinite or not a number.
    """
    for name, value in values.items():
        rows = value.detach().reshape(len(value), -1)
        bad = ~torch.isfinite(rows)
        if not bool(bad.any()):
            continue
        first = rows[bad][0].item()
        seeds = bad.any(-1).nonzero()[:, 0].tolist()
        of = f" in run {seeds[0]}" if len(value) > 1 else ""
        if len(seeds) > 1:
            of = f" in {len(seeds)} of {len(value)} runs"
        raise UnstableError(
            f"the {name} is {first} at step {step}{of}. {_CAUSE[0].upper()}{_CAUSE[1:]}",
            step=step,
            cause=_CAUSE,
        )
