"""Recipes that are published or known to work, by name."""

import json
import tomllib
from pathlib import Path

from hotgrid.errors import ArgumentError, near
from hotgrid.files import read_regular
from hotgrid.vision._augment import (
    AlternateFlip,
    ChooseOne,
    ColourJitter,
    CutMix,
    Cutout,
    HorizontalFlip,
    MixUp,
    PadCrop,
    RandAugment,
    RandomErasing,
    StageSequence,
    TrivialAugment,
)

from ._recipe import VisionRecipe

_LARGEST = 1 << 20
# The mean colour of ImageNet.
_MEAN = (124, 116, 104)
_ERASE = RandomErasing(prob=0.25)
_MIX = ChooseOne((MixUp(0.8), CutMix(1.0)))

_SWIN = VisionRecipe(
    epochs=300.0,
    batch=1024,
    rate=5e-4,
    rate_batch=512,
    decay=0.05,
    warmup=20.0,
    end=0.01,
    clip=5.0,
    smoothing=0.1,
    drop_path=0.2,
    augment=StageSequence((HorizontalFlip(), RandAugment(fill=_MEAN))),
    after=StageSequence((_ERASE, _MIX)),
)

_DEIT = VisionRecipe(
    epochs=300.0,
    batch=1024,
    rate=5e-4,
    rate_batch=512,
    decay=0.05,
    warmup=5.0,
    end=0.02,
    smoothing=0.1,
    drop_path=0.1,
    average=0.99996,
    repeats=3,
    augment=StageSequence((HorizontalFlip(), RandAugment(fill=_MEAN))),
    after=StageSequence((_ERASE, _MIX)),
)

# Milder than what large images take: half of the samples are mixed, and at most one operation
# is applied. Muon needs a third of the steps of AdamW.
_SMALL_SWIN = VisionRecipe(
    epochs=160.0,
    batch=256,
    optimizer="muon",
    rate=3e-3,
    decay=0.05,
    warmup=10.0,
    clip=5.0,
    smoothing=0.1,
    drop_path=0.1,
    average=0.999,
    augment=StageSequence((PadCrop(4), HorizontalFlip(), RandAugment(layers=1))),
    after=StageSequence((_ERASE, ChooseOne((MixUp(0.8), CutMix(1.0)), noop=2.0))),
)

# Rates, decay and smoothing after airbench, for the mean of a batch.
_FAST_RESNET = VisionRecipe(
    epochs=10.0,
    batch=1024,
    optimizer="sgd",
    rate=1.5,
    rate_batch=1024,
    decay=1.3e-3,
    momentum=0.85,
    warmup=2.3,
    shape="linear",
    end=0.07,
    smoothing=0.2,
    norm_rate=64.0,
    flip=True,
    augment=StageSequence((PadCrop(2), AlternateFlip())),
)

# He et al. 2016 on CIFAR-10, with a longer and smoother schedule and Cutout.
_RESNET = VisionRecipe(
    epochs=100.0,
    batch=512,
    optimizer="sgd",
    rate=0.4,
    rate_batch=512,
    decay=5e-4,
    momentum=0.9,
    warmup=5.0,
    end=0.0,
    smoothing=0.1,
    average=0.999,
    augment=StageSequence((PadCrop(4), HorizontalFlip(), Cutout(8))),
)

_FINE_TUNE = VisionRecipe(
    epochs=20.0,
    batch=128,
    rate=5e-4,
    decay=0.05,
    warmup=2.0,
    clip=5.0,
    smoothing=0.1,
    drop_path=0.1,
    average=0.999,
    layer_decay=0.75,
    augment=StageSequence((HorizontalFlip(), ColourJitter(), TrivialAugment())),
    after=_ERASE,
)

RECIPES: dict[str, VisionRecipe] = {
    "swin": _SWIN,
    "deit": _DEIT,
    "small-swin": _SMALL_SWIN,
    "fast-resnet": _FAST_RESNET,
    "small-resnet": _RESNET,
    "fine-tune": _FINE_TUNE,
}


def recipe_names() -> tuple[str, ...]:
    """Return the names of the recipes.

    Example:
        >>> recipe_names()[0]
        'swin'
    """
    return tuple(RECIPES)


def usual_recipe(model: str, small: bool) -> str:
    """The name of the default recipe for a model."""
    if model.startswith("fast"):
        return "fast-resnet"
    if model.startswith("resnet") and small:
        return "small-resnet"
    return "small-swin" if small else "swin"


def read_recipe(path: str | Path) -> VisionRecipe:
    """Read a recipe from a `.toml` or `.json` file. `base` names the recipe that it changes.

    Raises:
        ArgumentError: The file is not a recipe.
    """
    data = read_regular(Path(path), _LARGEST)
    try:
        text = data.decode()
        found = tomllib.loads(text) if Path(path).suffix == ".toml" else json.loads(text)
    except ValueError as problem:
        raise ArgumentError(f"the recipe `{path}` cannot be read: {problem}") from None
    base = find_recipe(found.pop("base")) if "base" in found else VisionRecipe()
    return VisionRecipe.from_plain(base.to_plain() | found, f"the recipe `{path}`")


def find_recipe(name: str) -> VisionRecipe:
    """Return a recipe by its name, or from a file.

    Raises:
        ArgumentError: There is none of this name.

    Example:
        >>> find_recipe("swin").clip
        5.0
    """
    if name in RECIPES:
        return RECIPES[name]
    if Path(name).suffix in (".toml", ".json"):
        return read_recipe(name)
    raise ArgumentError(
        f"there is no recipe `{name}`{near(name, RECIPES)}; there are {', '.join(RECIPES)}, or "
        "give a .toml or .json file"
    )
