"""The search for the form of one layer, by size and error."""

import math
from functools import cached_property

import torch
from torch import Tensor, nn

from hotgrid.errors import ArgumentError
from hotgrid.kernels._codebook._coded import Coded
from hotgrid.kernels._codebook._linear import CodebookLinear
from hotgrid.kernels._codebook._replaced import in_place_of

from ._fit import RECIPES, Recipe, Sizes
from ._observed import measured

_EXACT = 0.02  # nothing narrower than int8 comes near
_ROWS_TOLD_BY, _ALIKE = 1024, 0.6  # an error beyond which clusters do not pay off
_LEAST = 2.0**-100  # of the largest weight: scales below it lose bits


class SearchedLayer:
    """One layer and the forms tried on it. Each form is learned once.

    Args:
        name: The name of the layer in its model; empty if it is the model.
        layer: What is to be compressed; it stays as it is.
        inputs: What it is given, `[n, in_features]` in f32 on the CPU, or None.
        form: The only one to try, or None.
        rotate: Whether `pq` rotates the columns.

    Raises:
        ArgumentError: The weight cannot be coded.
    """

    def __init__(
        self,
        name: str,
        layer: nn.Linear,
        inputs: Tensor | None,
        form: str | None,
        rotate: bool,
    ) -> None:
        self.name, self._layer, self._inputs = name, layer, inputs
        self._unit = _unit(layer.weight.detach(), self.shown)
        self._shape = rows, cols = tuple(layer.weight.shape)
        sizes = Sizes(rows, cols, _different(layer.weight.detach()), rotate)
        self._bytes = {each: each.bytes(sizes) for each in RECIPES if cols % each.width == 0}
        self.recipes = [each for each in self._bytes if form in (None, each.form)]
        self._named, self._rotate = form is not None, rotate
        self._tried: dict[Recipe, tuple[Coded, float]] = {}

    @property
    def shown(self) -> str:
        """The layer in a sentence."""
        return f"`{self.name}`" if self.name else "the layer"

    @property
    def least(self) -> int:
        """The bytes of its smallest form."""
        return min(map(self.bytes, self.recipes))

    @property
    def widest(self) -> Recipe:
        """The form with the most bits; nothing larger is more exact."""
        return max(self.recipes, key=lambda each: each.bits)

    @property
    def tried(self) -> list[Recipe]:
        """The measurements so far."""
        return list(self._tried)

    def bytes(self, recipe: Recipe) -> int:
        """Return the bytes of a form; exact after it has been tried."""
        return self._tried[recipe][0].bytes if recipe in self._tried else self._bytes[recipe]

    def error(self, recipe: Recipe) -> float:
        """Return the error of a form."""
        if recipe not in self._tried:
            signs = None
            if self._rotate and recipe.form == "pq":
                draw = torch.Generator("cpu").manual_seed(0)
                shape = self._shape[1:]
                coins = torch.randint(0, 2, shape, generator=draw, device="cpu")
                signs = (coins * 2 - 1).to(torch.int8)
            # Recomputed each time, so that only one layer at a time takes memory twice.
            weight = self._layer.weight.detach().to("cpu", torch.float32) / self._unit
            self._tried[recipe] = measured(recipe, weight, self._unit, self._inputs, signs)
        return self._tried[recipe][1]

    def widest_of_forms(self, budget: float) -> list[Recipe]:
        """Return of each form the one with the most bits that fits, the widest first.

        Where there are few rows, narrow codes are padded and may take more than wide ones.

        Learning `rows` takes longest: without near-copies only if nothing else fits.
        """
        found: dict[str, Recipe] = {}
        for recipe in sorted(self.recipes, key=lambda each: each.bits):
            if self._bytes[recipe] <= budget:
                found[recipe.form] = recipe
        if len(found) > 1 and "rows" in found and not self._rows_are_alike:
            del found["rows"]
        return sorted(found.values(), key=lambda each: -each.bits)

    @cached_property
    def _rows_are_alike(self) -> bool:
        """Whether rows have near-copies, by a sample with four for each that a byte names."""
        rows = self._layer.weight.detach()
        if rows.shape[0] < _ROWS_TOLD_BY:
            return True
        some = rows[:: rows.shape[0] // _ROWS_TOLD_BY][:_ROWS_TOLD_BY]
        some = some.to("cpu", torch.float32) / self._unit
        lengths = some.square().sum(1)
        apart = lengths[:, None] + lengths - 2 * some @ some.T
        nearest = apart.fill_diagonal_(math.inf).amin(1).clamp_min(0)
        # Each of two copies is off by half of what they differ in square.
        return bool(nearest.mean() / 2 <= _ALIKE**2 * lengths.mean())

    def most_exact(self, budget: float) -> Recipe | None:
        """Return the most exact form within a number of bytes; None if there is none."""
        fits = self.widest_of_forms(budget)
        for recipe in fits:
            if recipe.form == "int8" and self.error(recipe) <= _EXACT:
                return recipe
        return min(fits, key=self.error) if fits else None

    def smallest(self, limit: float) -> Recipe:
        """Return the form of the fewest bytes within a limit, or the most exact one."""
        for recipe in sorted(self.recipes, key=self._bytes.__getitem__):
            if self.error(recipe) <= limit:
                return recipe
        return min(self._tried, key=self.error)

    def granted_bytes(self, bits: float) -> float:
        """Return the bytes allowed at a number of bits per weight.

        A form with codes that narrow may also store its scales and tables. `rows` may not: its
        table holds the weights. A form chosen by name is judged by its codes alone: those of
        `int4` have 4 bits, and 4.25 with their scales.
        """
        rows, cols = self._shape
        named = self.recipes if self._named else []
        fitting = [each for each in self._bytes if each.bits <= bits]
        fitting += [each for each in named if int(each.bits) <= bits]
        granted = [self._bytes[each] for each in fitting if each.form != "rows"]
        return max([rows * cols * bits / 8 + 4 * rows, *granted])

    def within_bits(self, bits: float) -> Recipe:
        """Return the most exact form within a number of bits per weight.

        Raises:
            ArgumentError: No form is that small.
        """
        found = self.most_exact(self.granted_bytes(bits))
        if found is not None:
            return found
        rows, cols = self._shape
        small = min(self.recipes, key=self._bytes.__getitem__)
        raise ArgumentError(
            f"`target`: {self.shown} of shape {self._shape} has no form of {bits:.3g} bits a "
            f"weight or less; the smallest, `{small.form}`, takes "
            f"{8 * self._bytes[small] / (rows * cols):.3g}, everything counted"
        )

    def compressed(self, recipe: Recipe, limit: float, force: bool) -> CodebookLinear:
        """Return the layer in a form.

        Raises:
            ArgumentError: The form exceeds the limit, and `force` is not set.
        """
        error = self.error(recipe)
        coded, _ = self._tried[recipe]
        if not (error <= limit or force):
            raise ArgumentError(self._refusal(coded, error, limit))
        made = CodebookLinear(coded, self._layer.bias, error)
        made.measured_error = torch.tensor(error, dtype=torch.float32, device="cpu")
        return in_place_of(self._layer, made.to(self._layer.weight.device))

    def _refusal(self, coded: Coded, error: float, limit: float) -> str:
        tried = ", ".join(
            f"`{each.form}` at {each.bits:.2f} bits {its:.2g}"
            for each, its in sorted(self._tried.values(), key=lambda pair: pair[0].bits)
        )
        why = ""
        if coded.form == "rows":
            why = (
                f": its {coded.rows} rows are not near-copies of {coded.scale.shape[0]} ones, "
                "and that is all that this form can keep"
            )
        return (
            f"form `{coded.form}` has a relative error of {_told_apart(error, limit)} on "
            f"{self.shown} of shape {self._shape}, beyond the limit of {limit:g}{why}. "
            f"Errors of what was tried: {tried}. Allow a larger form or `max_error`, or take "
            "it as it is with `force=True`"
        )


def _told_apart(error: float, limit: float) -> str:
    """An error with as many digits as it takes to see that it is beyond the limit."""
    digits = (n for n in range(2, 17) if float(f"{error:.{n}g}") > limit)
    return f"{error:.{next(digits, 17)}g}"


def _different(weight: Tensor) -> int:
    """How many rows there are, each kind counted once; a byte names at most 256."""
    by_first = weight[:, 0].unique().numel()
    return by_first if by_first > 256 else weight.unique(dim=0).shape[0]


def _unit(weight: Tensor, shown: str) -> float:
    """Return a power of two that scales the largest weight to between 1 and 2.

    Errors do not depend on the unit, and such a one changes no bit of the weights. Squares
    of them, which learning needs, do not fit in f32 for all that do.
    """
    if weight.is_meta or not weight.is_floating_point() or weight.numel() == 0:
        raise ArgumentError(
            f"the weight of {shown} must be real, finite and not empty; "
            f"it is {weight.dtype} {tuple(weight.shape)} on {weight.device}"
        )
    most = float(weight.abs().max())
    if not most <= torch.finfo(torch.float32).max:
        raise ArgumentError(f"the weight of {shown} must be finite and not empty, within f32")
    if 0 < most < _LEAST:
        raise ArgumentError(
            f"the weight of {shown} is too small to be coded in f32: its largest is {most:.2g}"
        )
    return 2.0 ** (math.frexp(most)[1] - 1) if most else 1.0
