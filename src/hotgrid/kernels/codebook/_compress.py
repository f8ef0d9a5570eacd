"""`compress`: linear layers replaced by codebooks that meet a target."""

import difflib
from collections.abc import Iterable
from typing import overload

import torch
from torch import Tensor, nn

from hotgrid.errors import ArgumentError

from ._coded import Coded
from ._fit import FORMS, RECIPES, Recipe
from ._linear import CodebookLinear
from ._observed import inputs_of_layers, measured
from ._replaced import replaced
from ._target import Target

MOST = 0.15
"""The error beyond which a form is refused where nothing else is said."""


@overload
def compress(
    module: nn.Linear,
    target: Target | str | None = None,
    form: str | None = None,
    calibration: Tensor | Iterable[Tensor] | None = None,
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
    calibration: Tensor | Iterable[Tensor] | None = None,
    max_error: float | None = None,
    force: bool = False,
    *,
    rotate: bool = False,
) -> nn.Module: ...


def compress(
    module: nn.Module,
    target: Target | str | None = None,
    form: str | None = None,
    calibration: Tensor | Iterable[Tensor] | None = None,
    max_error: float | None = None,
    force: bool = False,
    *,
    rotate: bool = False,
) -> nn.Module:
    """Return a layer, or a model with every `nn.Linear` in it, compressed.

    The weights become codes and small tables, and products are computed from those. The
    error of each layer's outputs is measured on `calibration`, or on white noise, and kept
    in the layer; beyond `max_error` a form is refused. The module that is given stays as
    it is; what is not compressed is shared with it.

    Args:
        module: An `nn.Linear`, or a model that holds some.
        target: `"4bit"`, `"2MB"` or `"error<=0.1"`, or a `Target`. Sizes and bits get the most
            exact form that fits, an error the smallest that meets it. None is the
            smallest form within `max_error`.
        form: `rows` (256 different rows), `pq` (sub-vectors), `int4` or `int8`; None tries all.
        calibration: Inputs: of the layer, `[n, in_features]`, or of the model, one or
            several that it is called with. What they use much is kept more exactly.
        max_error: The largest error that is taken; None is 0.15, or that of the target.
        force: Take a form beyond `max_error` all the same.
        rotate: Mix the columns of `pq` by a Hadamard rotation first, which helps where few
            weights are very large. The product rotates `x` alike.

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
    if form is not None and form not in FORMS:
        near = difflib.get_close_matches(str(form), FORMS, 1)
        hint = f"; did you mean `{near[0]}`?" if near else ""
        raise ArgumentError(f"`form` {form!r} must be one of {', '.join(FORMS)}{hint}")
    if not isinstance(module, nn.Module):
        raise ArgumentError(f"`module` must be a torch module, got {type(module).__name__}")
    layers = {n: m for n, m in module.named_modules() if type(m) is nn.Linear}
    if not layers:
        raise ArgumentError(f"`module`, a {type(module).__name__}, holds no `nn.Linear`")
    inputs = inputs_of_layers(module, layers, calibration)
    weights = sum(each.weight.numel() for each in layers.values())
    made: dict[int, nn.Module] = {}
    for name, layer in layers.items():
        own = wanted
        if wanted is not None and wanted.bytes is not None:
            own = Target(bytes=wanted.bytes * layer.weight.numel() / weights)
        tried = _Layer(name, layer, inputs.get(name), rotate)
        made[id(layer)] = tried.compressed(own, form, limit, force)
    return replaced(module, made)


def _limits(
    target: Target | str | None, max_error: float | None
) -> tuple[Target | None, float]:
    wanted = None if target is None else Target.of(target)
    if max_error is not None and not max_error > 0:
        raise ArgumentError(f"`max_error` is {max_error}; expected a positive number")
    asked = wanted.error if wanted is not None else None
    given = [each for each in (asked, max_error) if each is not None]
    return wanted, min(given) if given else MOST


class _Layer:
    """One layer, and what has been tried on it."""

    def __init__(
        self, name: str, layer: nn.Linear, inputs: Tensor | None, rotate: bool
    ) -> None:
        self._name, self._layer, self._rotate = name, layer, rotate
        self._weight = layer.weight.detach().float().cpu()
        if not bool(self._weight.isfinite().all()) or self._weight.numel() == 0:
            raise ArgumentError(f"the weight of {self._shown} must be finite and not empty")
        self._inputs = inputs
        self._tried: list[tuple[Coded, float]] = []

    @property
    def _shown(self) -> str:
        return f"`{self._name}`" if self._name else "the layer"

    def compressed(
        self, target: Target | None, form: str | None, limit: float, force: bool
    ) -> CodebookLinear:
        """Return the layer in the form that suits best."""
        recipes = [
            each
            for each in RECIPES
            if form in (None, each.form) and self._weight.shape[1] % each.width == 0
        ]
        if target is not None and target.error is None:
            coded, error = self._most_exact(recipes, target, limit)
        else:
            coded, error = self._smallest(recipes, limit)
        if error > limit and not force:
            raise ArgumentError(self._refusal(coded, error, limit))
        device = self._layer.weight.device
        return CodebookLinear(coded, self._layer.bias, error).to(device)

    def _most_exact(
        self, recipes: list[Recipe], target: Target, limit: float
    ) -> tuple[Coded, float]:
        """From the largest on; of each form only the first that fits: it is the most exact."""
        room = target.bytes or float("inf")
        bits = target.bits or 8 * room / self._weight.numel()
        done: set[str] = set()
        for recipe in reversed(recipes):
            # What would be too large is not learned to find out.
            if recipe.bits <= bits and recipe.form not in done:
                coded, error = self._try(recipe)
                if coded.bytes <= room:
                    done.add(recipe.form)
                    if error <= limit:
                        return coded, error
        fits = [each for each in self._tried if each[0].bytes <= room]
        if fits:
            return min(fits, key=lambda each: each[1])
        raise ArgumentError(
            f"{self._shown} of shape {tuple(self._weight.shape)} has no form of {bits:.3g} "
            f"bits a weight or less; there are {', '.join(str(each.bits) for each in recipes)}"
        )

    def _smallest(self, recipes: list[Recipe], limit: float) -> tuple[Coded, float]:
        for recipe in recipes:
            coded, error = self._try(recipe)
            if error <= limit:
                return coded, error
        return min(self._tried, key=lambda each: each[1])

    def _try(self, recipe: Recipe) -> tuple[Coded, float]:
        cols = self._weight.shape[1]
        signs = None
        if self._rotate and recipe.form == "pq":
            draw = torch.Generator().manual_seed(0)
            signs = (torch.randint(0, 2, (cols,), generator=draw) * 2 - 1).to(torch.int8)
        coded, error = measured(recipe, self._weight, self._inputs, signs)
        self._tried.append((coded, error))
        return coded, error

    def _refusal(self, coded: Coded, error: float, limit: float) -> str:
        tried = ", ".join(
            f"`{each.form}` at {each.bits:.2f} bits {its:.2f}" for each, its in self._tried
        )
        why = ""
        if coded.form == "rows":
            why = (
                f": its {coded.rows} rows are not near-copies of {coded.scale.shape[0]} ones, "
                "and that is all that this form can keep"
            )
        return (
            f"form `{coded.form}` has a relative error of {error:.2f} on {self._shown} of "
            f"shape {tuple(self._weight.shape)}, beyond the limit of {limit:g}{why}. Errors of "
            f"what was tried: {tried}. Allow a larger form or `max_error`, or take it as it is "
            "with `force=True`"
        )
