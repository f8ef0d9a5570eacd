"""`Operator`: a function of one tensor with its own gradient, eager and compiled.

Eager it is a `torch.autograd.Function`, which costs little; inside `torch.compile` it is
an operator of torch's library, which the compiler keeps whole. Both share one forward and
one backward. An operator takes no Python objects, so there the worker goes by its name.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import Parameter

from hotgrid.cluster._handles import found

Forward = Callable[..., Tensor]
Backward = Callable[..., Tensor]


class Operator:
    """A tensor, settings and the object that does the work in, a new tensor out.

    Args:
        name: Its name in `torch.ops.hotgrid`.
        settings: What comes between the tensor and the object, as a schema has it:
            `"int dim, str op"`.
        forward: `(x, *settings, worker) -> result`; never returns `x` itself.
        fake: The same without communication: only the shape counts.
        backward: `(gradient, kept, *settings, worker) -> gradient of x`, built from operators,
            so that it has a gradient itself.
        keeps: `(*settings, worker) -> bool`: whether `kept` is `(x, result)`;
            otherwise it is empty.
    """

    def __init__(
        self,
        name: str,
        settings: str,
        forward: Forward,
        fake: Forward,
        backward: Backward,
        keeps: Callable[..., bool] | None = None,
    ) -> None:
        def remember(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
            ctx.settings = inputs[1:]
            if keeps is not None and keeps(*ctx.settings):
                ctx.save_for_backward(inputs[0], output)

        def differentiate(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
            *settings, worker = ctx.settings
            worker = found(worker) if isinstance(worker, str) else worker
            back = backward(gradient, ctx.saved_tensors, *settings, worker)
            return (back, *(None,) * len(ctx.settings))

        def run(ctx: Any, *inputs: Any) -> Tensor:
            # The result of forward may be a view of a buffer that nothing else uses; as
            # `data` it may be written into.
            output = forward(*inputs).data
            remember(ctx, inputs, output)
            return output

        members = {"forward": staticmethod(run), "backward": staticmethod(differentiate)}
        self._eager: Any = type(name, (torch.autograd.Function,), members)
        self._forward = forward
        full = f"hotgrid::{name}"
        torch.library.define(
            full, f"(Tensor x, {settings + ', ' * bool(settings)}str worker) -> Tensor"
        )
        torch.library.impl(full, "default", _by_name(forward))
        torch.library.register_fake(full, _by_name(fake))
        torch.library.register_autograd(full, differentiate, setup_context=remember)
        self._compiled: Any = getattr(torch.ops.hotgrid, name).default

    def __call__(self, x: Tensor, *settings: Any) -> Tensor:
        """Apply it; the last of the settings is the worker."""
        # Tracers other than Dynamo pass tensors of their own kind.
        if torch.compiler.is_compiling() or type(x) not in (Tensor, Parameter):
            return self._compiled(x, *settings[:-1], settings[-1].name)
        if x.requires_grad and torch.is_grad_enabled():
            return self._eager.apply(x, *settings)
        return self._forward(x, *settings)


def _by_name(function: Forward) -> Forward:
    """The same function, given the name of the worker."""
    return lambda x, *settings: function(x, *settings[:-1], found(settings[-1]))
