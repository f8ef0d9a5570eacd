"""`host_work`: finds work in an environment's methods that a CUDA graph cannot hold."""

from typing import Any

import torch
from torch import Tensor

from hotgrid.tensors._torch_private import LightDispatchMode, tree_leaves
from hotgrid.train.rl._draws import Draws

from ._environment import Discrete, Environment

_WAITS = (torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape)
# Other operations take a number on the host as it is; these copy it to the device.
_COPIES = {"_to_copy", "copy_", "where"}


def host_work(env: Environment, device: torch.device) -> str | None:
    """Return the first method that copies from the host or waits for it, and how.

    A CUDA graph cannot hold such work. Methods are called twice and watched the second time,
    since tensors that are kept from the first call are no such work.

    Example:
        >>> from hotgrid.train import rl
        >>> host_work(rl.CartPole(), torch.device("cpu"))
    """
    draws, found = Draws(0, device), None
    for _ in range(2):
        found = None
        random = draws.uniform(1, 2, env.randoms, dtype=env.dtype)
        action = (
            draws.below(env.actions.count, 1, 2)
            if isinstance(env.actions, Discrete)
            else draws.uniform(1, 2, env.actions.width)
        )
        with _Watch(device) as watch:
            state = env.initial(random)
            found = found or watch.told("initial")
            env.observe(state)
            found = found or watch.told("observe")
            env.step(state, action)
            found = found or watch.told("step")
    return found


class _Watch(LightDispatchMode):
    """Notes operations that the host takes part in."""

    def __init__(self, device: torch.device) -> None:
        super().__init__()
        self._device, self._seen = device.type, ""

    def told(self, method: str) -> str | None:
        """The method and the operation that was seen, if any."""
        return f"`{method}` {self._seen}" if self._seen else None

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Note the operation, and do it."""
        result = func(*args, **(kwargs or {}))
        self._seen = self._seen or self._told_of(func, _tensors((args, kwargs)), result)
        return result

    def _told_of(self, func: Any, given: list[Tensor], result: Any) -> str:
        name = func.overloadpacket.__name__
        away = [x for x in given if x.device.type != self._device]
        if func is torch.ops.aten.lift_fresh.default:
            return "makes a tensor of numbers (`torch.tensor`)"
        if _waits(func, given):
            return f"waits for the values of a tensor (`{name}`)"
        if any(x.ndim or name in _COPIES for x in away):
            return f"uses a tensor that is not on {self._device}"
        if given and not away and any(x.device.type != self._device for x in _tensors(result)):
            return f"copies a tensor from {self._device}"
        return ""


def _tensors(value: Any) -> list[Tensor]:
    return [x for x in tree_leaves(value) if isinstance(x, Tensor)]


def _waits(func: Any, given: list[Tensor]) -> bool:
    """Whether the result, or its shape, comes back to the host."""
    if func.overloadpacket.__name__ == "index":
        return any(x.dtype in (torch.bool, torch.uint8) for x in given[1:])
    return any(tag in func.tags for tag in _WAITS)
