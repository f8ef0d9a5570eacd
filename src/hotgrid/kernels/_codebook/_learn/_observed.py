"""The inputs of layers, and the error of a code on them."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

from hotgrid.config import logger
from hotgrid.errors import ArgumentError
from hotgrid.kernels._codebook._coded import Coded, rotated
from hotgrid.kernels._codebook._linear import CodebookLinear

from ._fit import Recipe

Batch: TypeAlias = Tensor | list[Any] | tuple[Any, ...] | Mapping[str, Any]
"""The arguments of a module: one, several, or several by name."""

Calibration: TypeAlias = Tensor | Mapping[str, Any] | Iterable[Batch]
"""One batch, if it is a tensor or goes by names, or several."""

_KEPT = 1024  # inputs of a layer
_PROBES = 64  # of them, an error is measured on
_AT_ONCE = 8  # so that the product is the one that is used later
_LARGE = 2.0**64


def inputs_of_layers(
    module: nn.Module, layers: Mapping[str, nn.Module], calibration: Calibration | None
) -> dict[str, Tensor]:
    """Return the inputs of each layer when the module is called with the calibration.

    A layer that is given nothing but zeros, or nothing at all, is left out with a warning.

    Raises:
        ArgumentError: The module cannot be called so; or the inputs are none, not finite
            or zero in all layers, so that no error can be measured on them.
    """
    if calibration is None:
        return {}
    batches = _batches(calibration)
    found: dict[str, Tensor] = {}
    for name, its in _seen(module, layers, batches).items():
        inputs = torch.cat(its) if its else None
        if inputs is not None and not bool(inputs.isfinite().all()):
            raise ArgumentError(
                f"`calibration` gives {_shown(name)} inputs that are NaN or infinite"
            )
        if inputs is not None and bool(inputs.any()):
            found[name] = _some(_unit_sized(inputs[inputs.any(1)]))
    if not found or not any(_says_something(each) for each in _tensors(batches)):
        raise ArgumentError(
            "`calibration` is empty or zero everywhere: no error can be measured on it"
        )
    for name in layers.keys() - found.keys():
        logger("kernels").warning(
            "compress: `calibration` gives %s nothing but zeros; its error is measured on "
            "white noise",
            _shown(name),
        )
    return found


def _says_something(x: Tensor) -> bool:
    """Whether it is not zero everywhere; a whole number may be an id, and 0 is one."""
    is_id = not (x.is_floating_point() or x.is_complex() or x.dtype == torch.bool)
    return is_id or bool(x.any())


def _shown(name: str) -> str:
    return f"`{name}`" if name else "the layer"


def _batches(calibration: Calibration) -> list[Batch]:
    single = isinstance(calibration, Tensor | Mapping)
    several = isinstance(calibration, Iterable) and not isinstance(calibration, str)
    batches = [calibration] if single else list(calibration) if several else []
    if not batches or not all(isinstance(b, Tensor | list | tuple | Mapping) for b in batches):
        raise ArgumentError(
            "`calibration` must be a tensor or several: what the module is called with, "
            "each a tensor, a tuple of arguments, or arguments by name"
        )
    return batches  # pyright: ignore[reportReturnType]  looked at above


def _tensors(batches: Iterable[Batch]) -> Iterator[Tensor]:
    for batch in batches:
        if isinstance(batch, Tensor):
            yield batch
        else:
            values = batch.values() if isinstance(batch, Mapping) else batch
            yield from (each for each in values if isinstance(each, Tensor))


def _seen(
    module: nn.Module, layers: Mapping[str, nn.Module], batches: list[Batch]
) -> dict[str, list[Tensor]]:
    seen: dict[str, list[Tensor]] = {name: [] for name in layers}

    def watch(name: str) -> torch.utils.hooks.RemovableHandle:
        def keep(_: nn.Module, args: tuple[Tensor, ...], named: dict[str, Tensor]) -> None:
            x = args[0] if args else named["input"]
            rows = x.detach().reshape(-1, x.shape[-1])
            # A part of each batch: all of them would take more memory than the model.
            seen[name].append(_some(rows).to("cpu", torch.float32, copy=True))

        return layers[name].register_forward_pre_hook(keep, with_kwargs=True)

    hooks: list[torch.utils.hooks.RemovableHandle] = []
    # Each its own: parts may be frozen while the whole is in training.
    modes = {each: each.training for each in module.modules()}
    try:
        hooks.extend(watch(name) for name in layers)
        module.eval()
        with torch.no_grad():
            for batch in batches:
                if isinstance(batch, Tensor):
                    module(batch)
                elif isinstance(batch, Mapping):
                    module(**batch)
                else:
                    module(*batch)
    except (RuntimeError, TypeError, ValueError, LookupError, AttributeError) as problem:
        shapes = ", ".join(str(tuple(each.shape)) for each in list(_tensors(batches))[:3])
        raise ArgumentError(
            f"the module cannot be called with `calibration` of shape {shapes}: {problem}"
        ) from problem
    finally:
        for each, training in modes.items():
            each.training = training
        for hook in hooks:
            hook.remove()
    return seen


def _some(inputs: Tensor) -> Tensor:
    every = max(1, inputs.shape[0] // _KEPT)
    return inputs[::every][:_KEPT]


def _unit_sized(inputs: Tensor) -> Tensor:
    """Errors are relative: the size of all does not matter, but its square must be finite."""
    return inputs / inputs.abs().max()


def measured(
    recipe: Recipe, weight: Tensor, unit: float, inputs: Tensor | None, signs: Tensor | None
) -> tuple[Coded, float]:
    """Return a matrix as a recipe codes it, and the relative error of its products.

    The error is that of the layer's own product on real inputs, or on white noise where
    there are none; it has what is lost in the codes and what is lost on the way.

    Args:
        recipe: How to code it.
        weight: The matrix in units, so that squares of it can be computed.
        unit: What 1 stands for, a power of two.
        inputs: `[n, cols]`, or None.
        signs: See `Coded`.
    """
    importance = torch.ones(weight.shape[1], dtype=torch.float32, device="cpu")
    if inputs is not None:
        seen = inputs if signs is None or recipe.form != "pq" else rotated(inputs, signs)
        squares = seen.square().mean(0)
        # A column that calibration never used may be used later: it counts a little.
        importance = squares / squares.mean().clamp_min(1e-30) + 1e-3
    coded = recipe.fit(weight, importance, signs)
    scale = (coded.scale.float() * unit).to(coded.scale.dtype)
    coded = replace(coded, scale=scale)
    # With small inputs, so that results of the largest weights stay within f32.
    x = _probes(inputs, weight.shape[1])
    small = min(1.0, _LARGE / unit)
    layer = CodebookLinear(coded)
    found = torch.cat([layer(some) for some in (x * small).split(_AT_ONCE)])
    exact = x.double() @ weight.double().T
    wrong, size = float((found.double() / (small * unit) - exact).norm()), float(exact.norm())
    if wrong == 0 or not math.isfinite(wrong) or size == 0:
        return coded, 0.0 if wrong == 0 else math.inf
    return coded, wrong / size


def _probes(inputs: Tensor | None, cols: int) -> Tensor:
    if inputs is None:
        draw = torch.Generator("cpu").manual_seed(1)
        shape = (_PROBES, cols)
        return torch.randn(shape, generator=draw, dtype=torch.float32, device="cpu")
    return inputs[:: max(1, inputs.shape[0] // _PROBES)][:_PROBES]
