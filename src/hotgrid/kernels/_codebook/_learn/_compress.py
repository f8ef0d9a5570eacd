"""`compress`: linear layers replaced by codebooks that meet a target."""

from collections.abc import Iterable
from typing import overload

import torch
from torch import nn

from hotgrid.config import logger
from hotgrid.errors import ArgumentError
from hotgrid.kernels._codebook._arguments import expect_form
from hotgrid.kernels._codebook._linear import CodebookLinear
from hotgrid.kernels._codebook._replaced import replaced

from ._budget import within_bytes
from ._observed import Calibration, inputs_of_layers
from ._searched import SearchedLayer
from ._target import Target, positive

MOST = 0.15
"""The default of `max_error`."""


@overload
def compress(
    module: nn.Linear,
    target: Target | str | None = None,
    form: str | None = None,
    calibration: Calibration | None = None,
    max_error: float | None = None,
    force: bool = False,
    *,
    rotate: bool = False,
) -> CodebookLinear: ...


@overload
def compress(
    module: nn.Module,
    target: Target | str | None = None,
    form: str | None = None,
    calibration: Calibration | None = None,
    max_error: float | None = None,
    force: bool = False,
    *,
    rotate: bool = False,
) -> nn.Module: ...


def compress(
    module: nn.Module,
    target: Target | str | None = None,
    form: str | None = None,
    calibration: Calibration | None = None,
    max_error: float | None = None,
    force: bool = False,
    *,
    rotate: bool = False,
) -> nn.Module:
    """Return a compressed layer, or a model with every `nn.Linear` compressed.

    The weights become codes and small tables, and products are computed from those. The
    error of each layer's outputs is measured on `calibration`, or on white noise, and kept
    in the layer; beyond `max_error` a form is refused. The module that is given stays as
    it is; what is not compressed is shared with it. Hooks of a layer stay with the new one.

    Subclasses of `nn.Linear`, and layers whose weight is computed from something else
    (parametrized, pruned, normalized), are left as they are, and a warning names them.

    Args:
        module: An `nn.Linear`, or a model that holds some.
        target: `"4bit"`, `"2MB"` or `"error<=0.1"`, or a `Target`. Bits get the most exact
            form that fits in each layer, a size the least error of all layers that fit
            in it together, an error the smallest form that meets it. None is the
            smallest form within `max_error`. All stored bytes count.
        form: `rows` (256 different rows), `pq` (sub-vectors), `int4` or `int8`; None tries all.
        calibration: Inputs: of the layer, `[n, in_features]`, or of the model, a tensor or
            several that it is called with; for a model of several arguments tuples of
            them, or dicts by name. Columns with large inputs are coded more exactly.
        max_error: The largest error that is taken; None is 0.15, or that of the target.
        force: Accept a form beyond `max_error`.
        rotate: Mix the columns of `pq` by a Hadamard rotation first, which helps where few
            weights are very large. The product rotates `x` alike. Other forms are never
            rotated.

    Returns:
        A `CodebookLinear`, or a model with them in place of its linear layers.

    Raises:
        ArgumentError: No form meets the target or `max_error`, and by how much each one
            misses; the module holds no `nn.Linear`; or an argument is wrong.

    Example:
        >>> layer = compress(torch.nn.Linear(256, 128), "4bit")
        >>> layer.form, layer.bits < 4.3, layer.error < 0.12
        ('pq', True, True)
    """
    wanted, limit = _limits(target, max_error)
    if form is not None:
        expect_form(form)
    for name, value in {"force": force, "rotate": rotate}.items():
        if not isinstance(value, bool):
            raise ArgumentError(f"`{name}` is {value!r}; expected True or False")
    if rotate and form not in (None, "pq"):
        raise ArgumentError(f"`rotate` is for the form `pq`; `{form}` is not rotated")
    layers = _linear_layers(module)
    inputs = inputs_of_layers(module, layers, calibration)
    searched = (
        SearchedLayer(name, layer, inputs.get(name), form, rotate)
        for name, layer in layers.items()
    )
    # Codes are learned in f32 on the CPU, whatever defaults and modes are active.
    with (
        torch.device("cpu"),
        torch.autocast("cpu", enabled=False),
        torch.inference_mode(False),
        torch.no_grad(),
    ):
        found = _found(searched, wanted, limit, force)
    made: dict[int, nn.Module] = dict(zip(map(id, layers.values()), found, strict=True))
    return replaced(module, made)


def _limits(
    target: Target | str | None, max_error: float | None
) -> tuple[Target | None, float]:
    wanted = None if target is None else Target.of(target)
    most = None if max_error is None else positive("max_error", max_error)
    asked = wanted.error if wanted is not None else None
    given = [each for each in (asked, most) if each is not None]
    return wanted, min(given) if given else MOST


def _linear_layers(module: nn.Module) -> dict[str, nn.Linear]:
    """The layers that can be replaced, by name; skipped ones are logged."""
    if not isinstance(module, nn.Module):
        raise ArgumentError(f"`module` must be a torch module, got {type(module).__name__}")
    compiled = [n for n, m in module.named_modules() if "_orig_mod" in m._modules]
    if compiled:
        raise ArgumentError(
            f"`module` has been compiled at `{compiled[0]}`; compress first, compile after"
        )
    linear = {n: m for n, m in module.named_modules() if isinstance(m, nn.Linear)}
    # A subclass may compute something else. A weight that is not a parameter is computed from
    # others, which would be lost.
    plain = {
        n: m for n, m in linear.items() if type(m) is nn.Linear and "weight" in m._parameters
    }
    others = [f"`{n}` ({type(m).__name__})" for n, m in linear.items() if n not in plain]
    if not plain:
        why = f"; {', '.join(others)} cannot be replaced" if others else ""
        raise ArgumentError(f"`module`, a {type(module).__name__}, holds no `nn.Linear`{why}")
    if others:
        logger("kernels").warning(
            "compress: left unchanged, since they are not plain nn.Linear: %s",
            ", ".join(others),
        )
    return plain


def _found(
    searched: Iterable[SearchedLayer], wanted: Target | None, limit: float, force: bool
) -> list[CodebookLinear]:
    """The compressed layers. Without a common size in bytes, one after the other."""
    if wanted is None or wanted.error is not None:
        return [each.compressed(each.smallest(limit), limit, force) for each in searched]
    if wanted.bits is not None:
        bits = wanted.bits
        return [each.compressed(each.within_bits(bits), limit, force) for each in searched]
    every, budget = list(searched), wanted.bytes or 0
    chosen = within_bytes(every, budget, limit)
    try:
        both = zip(every, chosen, strict=True)
        return [each.compressed(recipe, limit, force) for each, recipe in both]
    except ArgumentError as refusal:
        raise ArgumentError(f"`target` of {budget:,.0f} bytes: {refusal}") from None
