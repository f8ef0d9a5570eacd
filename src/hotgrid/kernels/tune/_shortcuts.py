"""What computed an earlier call, found again by what its tensors are like.

To ask tensors for types, devices, shapes and strides takes some 4 us. torch has a check of
all these at once, against tensors seen before, which its compiler uses: 0.5 us. As there may
be many such checks, the address of the first tensor tells which to try. Another tensor may
have got that address meanwhile: then the check fails, or it is like the first one.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.cuda import is_current_stream_capturing

from ._plain import signature_of, undisturbed, wanted

Function = Callable[..., Any]

_MOST_REMEMBERED = 4096  # calls; they are cheap to find again
_MOST_KINDS = 4  # of calls with one and the same first tensor, in turn


class Shortcuts:
    """Functions of tensors, by a word for what is computed and by the tensors.

    Attributes:
        near: For a word and the address of a first tensor: checks, the function for tensors
            that pass, and whether they are on a GPU. Nothing else tells such calls apart,
            but for compilers, dispatch modes and forward mode, which no check notices.
    """

    def __init__(self) -> None:
        self.near: dict[Hashable, list[tuple[Function, Function, bool]]] = {}
        self._known: dict[Hashable, tuple[Function, bool]] = {}

    def find(self, front: Hashable, tensors: tuple[Tensor, ...]) -> Function | None:
        """Return what was kept for a call that nobody traces or records, or None.

        It is looked for far and wide; the next time it will be near.
        """
        try:
            if not undisturbed(*tensors):
                return None
            found = self._known.get((front, wanted(tensors), signature_of(tensors)))
        # A sparse or nested tensor, or none at all; a word that cannot be one.
        except (AttributeError, RuntimeError, TypeError):
            return None
        if found is None:
            return None
        self._keep_near(front, tensors, *found)
        return None if found[1] and is_current_stream_capturing() else found[0]

    def keep(self, front: Hashable, tensors: tuple[Tensor, ...], function: Function) -> None:
        """Let later calls like this one find a function."""
        if len(self._known) >= _MOST_REMEMBERED:
            self._known.clear()
        key = (front, wanted(tensors), signature_of(tensors))
        self._known[key] = (function, _on_gpu(tensors))

    def _keep_near(
        self, front: Hashable, tensors: Sequence[Tensor], function: Function, on_gpu: bool
    ) -> None:
        fits = check_of(tensors)
        if fits is None:
            return
        if len(self.near) >= _MOST_REMEMBERED:
            self.near.clear()
        kinds = self.near.setdefault((front, id(tensors[0])), [])
        if len(kinds) >= _MOST_KINDS:
            kinds.clear()
        kinds.append((fits, function, on_gpu))


def check_of(tensors: Sequence[Tensor]) -> Callable[..., bool] | None:
    """Whether tensors are like these, the modes of the thread included; None without torch's.

    One tensor twice never passes, which is slow and not wrong.
    """
    try:
        guards: Any = torch._C._dynamo.guards.TensorGuards  # pyright: ignore[reportAttributeAccessIssue]
        alike = guards(
            *tensors,
            dynamic_dims_sizes=[list(x.shape) for x in tensors],
            dynamic_dims_strides=[list(x.stride()) for x in tensors],
        ).check
    except (AttributeError, RuntimeError, TypeError, ValueError):
        return None
    if not any(x.requires_grad for x in tensors):
        return alike
    # It does not ask whether gradients are noted.
    noted = torch.is_grad_enabled()
    return lambda *others: alike(*others) and torch.is_grad_enabled() is noted


def _on_gpu(tensors: Sequence[Tensor]) -> bool:
    return tensors[0].is_cuda
