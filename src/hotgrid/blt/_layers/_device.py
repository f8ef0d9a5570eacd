"""Whether a device can be used here."""

import torch

from hotgrid.errors import ArgumentError


def usable_device(name: str) -> torch.device:
    """The device of this name.

    Raises:
        ArgumentError: It cannot be used here.
    """
    try:
        return torch.zeros((), device=name).device
    except (RuntimeError, AssertionError) as problem:
        text = str(problem).splitlines()[0]
        raise ArgumentError(f"`device` is `{name}`, which cannot be used: {text}") from None
