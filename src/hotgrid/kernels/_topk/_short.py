"""Top-k as a function of the tensor alone, for later calls like one that was computed."""

from collections.abc import Callable
from typing import Any

from torch import Tensor

from ._native import CORE, core_like

Selection = Callable[[Tensor], tuple[Tensor, Tensor]]


def short_selection(
    x: Tensor, arguments: tuple[int, int, bool, bool], *, wanted: bool
) -> Callable[[Callable[..., Any]], Selection]:
    """Return what makes such a function out of that of a candidate.

    Args:
        x: As in the calls to come.
        arguments: `k`, `dim` counted from the front, `largest`, `sorted`.
        wanted: Whether the values shall have gradients.
    """

    def without(function: Callable[..., Any]) -> Selection:
        ready = core_like(x, *arguments) if function is CORE.function else None
        return ready or (lambda x: function(x, *arguments))

    def with_gradients(function: Callable[..., Any]) -> Selection:
        dim = arguments[1]

        def run(x: Tensor) -> tuple[Tensor, Tensor]:
            indices = function(x.detach(), *arguments)[1]
            # torch knows every derivative of gather, and its autograd costs less than ours.
            return x.gather(dim, indices), indices

        return run

    return with_gradients if wanted else without
