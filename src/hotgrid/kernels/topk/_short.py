"""Top-k as a function of the tensor alone, for later calls like one that was computed."""

from collections.abc import Callable
from typing import Any

from torch import Tensor

Selection = Callable[[Tensor], tuple[Tensor, Tensor]]


def short_selection(
    arguments: tuple[int, int, bool, bool], *, wanted: bool
) -> Callable[[Callable[..., Any]], Selection]:
    """Return what makes such a function out of that of a candidate.

    Args:
        arguments: `k`, `dim` counted from the front, `largest`, `sorted`.
        wanted: Whether the values shall have gradients.
    """

    def without(function: Callable[..., Any]) -> Selection:
        return lambda x: function(x, *arguments)

    def with_gradients(function: Callable[..., Any]) -> Selection:
        dim = arguments[1]

        def run(x: Tensor) -> tuple[Tensor, Tensor]:
            indices = function(x.detach(), *arguments)[1]
            # torch knows every derivative of gather, and its autograd costs less than ours.
            return x.gather(dim, indices), indices

        return run

    return with_gradients if wanted else without
