"""What layers see, and how far off a code is on it."""

from collections.abc import Iterable, Mapping

import torch
from torch import Tensor, nn

from hotgrid.errors import ArgumentError

from ._coded import Coded
from ._fit import Recipe
from ._hadamard import rotated
from ._registered import multiplied

_KEPT = 1024  # inputs of a layer
_PROBES = 64  # of them, an error is measured on
_AT_ONCE = 8  # so that the product is the one that is used later


def inputs_of_layers(
    module: nn.Module,
    layers: Mapping[str, nn.Module],
    calibration: Tensor | Iterable[Tensor] | None,
) -> dict[str, Tensor]:
    """Return what each layer is given when the module is called with the calibration."""
    if calibration is None:
        return {}
    calls = [calibration] if isinstance(calibration, Tensor) else list(calibration)
    if not calls or not all(isinstance(each, Tensor) for each in calls):
        raise ArgumentError(
            "`calibration` must be a tensor or several: what the module is called with"
        )
    seen: dict[str, list[Tensor]] = {name: [] for name in layers}

    def watch(name: str) -> None:
        def keep(_: nn.Module, arguments: tuple[Tensor, ...]) -> None:
            seen[name].append(arguments[0].detach().reshape(-1, arguments[0].shape[-1]))

        hooks.append(layers[name].register_forward_pre_hook(keep))

    hooks: list[torch.utils.hooks.RemovableHandle] = []
    # Each its own: parts may be frozen while the whole is in training.
    modes = {each: each.training for each in module.modules()}
    try:
        for name in layers:
            watch(name)
        module.eval()
        with torch.no_grad():
            for each in calls:
                module(each)
    except RuntimeError as problem:
        shapes = ", ".join(str(tuple(each.shape)) for each in calls[:3])
        raise ArgumentError(
            f"the module cannot be called with `calibration` of shape {shapes}: {problem}"
        ) from problem
    finally:
        for each, training in modes.items():
            each.training = training
        for hook in hooks:
            hook.remove()
    return {name: _some(torch.cat(its)) for name, its in seen.items() if its}


def _some(inputs: Tensor) -> Tensor:
    every = max(1, inputs.shape[0] // _KEPT)
    return inputs[::every][:_KEPT].float().cpu()


def measured(
    recipe: Recipe, weight: Tensor, inputs: Tensor | None, signs: Tensor | None
) -> tuple[Coded, float]:
    """Return a matrix as a recipe codes it, and the relative error of its products.

    The error is that of the real product on real inputs, or on white noise where there are
    none; it has what is lost in the codes and what is lost on the way.
    """
    importance = torch.ones(weight.shape[1])
    if inputs is not None:
        seen = inputs if signs is None or recipe.form != "pq" else rotated(inputs, signs)
        squares = seen.square().mean(0)
        # A column that calibration never used may be used later: it counts a little.
        importance = squares / squares.mean().clamp_min(1e-30) + 1e-3
    coded = recipe.fit(weight, importance, signs)
    x = inputs
    if x is None:
        x = torch.randn((_PROBES, weight.shape[1]), generator=torch.Generator().manual_seed(1))
    x = x[:: max(1, x.shape[0] // _PROBES)][:_PROBES]
    parts = (coded.codes, coded.scale, coded.table, coded.signs)
    found = torch.cat([multiplied(coded.form, some, *parts) for some in x.split(_AT_ONCE)])
    exact = x @ weight.T
    wrong, size = float((found - exact).norm()), float(exact.norm())
    if size == 0:
        return coded, 0.0 if wrong == 0 else float("inf")
    return coded, wrong / size
