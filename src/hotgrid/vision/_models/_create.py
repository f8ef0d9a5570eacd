"""Models by name."""

import dataclasses
import fnmatch
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hotgrid.errors import ArgumentError, near

from ._config import ModelConfig
from ._convnext import CONVNEXTS, ConvNeXt, ConvNeXtConfig
from ._fast_resnet import FAST_RESNETS, FastResNet, FastResNetConfig
from ._model import VisionModel
from ._resnet import RESNETS, ResNet, ResNetConfig
from ._swin import Swin, SwinConfig
from ._swin_sizes import SWINS
from ._vit import VITS, ViT, ViTConfig
from ._weights import load_weights


@dataclass(frozen=True)
class Family:
    """A family of models: its configuration, its class, and its sizes by name."""

    config: type[ModelConfig]
    model: Callable[[Any], VisionModel]
    sizes: Mapping[str, Mapping[str, Any]]


FAMILIES: tuple[Family, ...] = (
    Family(ResNetConfig, ResNet, RESNETS),
    Family(FastResNetConfig, FastResNet, FAST_RESNETS),
    Family(SwinConfig, Swin, SWINS),
    Family(ViTConfig, ViT, VITS),
    Family(ConvNeXtConfig, ConvNeXt, CONVNEXTS),
)
"""All families; a new one is a module and a line here."""

_SIZES: dict[str, tuple[Family, Mapping[str, Any]]] = {
    name: (family, size) for family in FAMILIES for name, size in family.sizes.items()
}


def create_model(
    name: str,
    *,
    pretrained: Path | str | None = None,
    num_classes: int | None = None,
    in_chans: int = 3,
    image_size: int | None = None,
    drop_path: float = 0.0,
    **changes: Any,
) -> VisionModel:
    """Make a model by name, with weights from a file or new ones.

    Names, and names of weights, are those of timm.

    Args:
        name: One of `list_models()`.
        pretrained: A file of weights, `.safetensors` or of `torch.save`. The number of
            channels and, where the family allows it, the size of images may differ.
        num_classes: How many classes; by default as many as this name has. Where a file
            has another number, the head is new. 0 for no head.
        in_chans: Channels of the images.
        image_size: Height and width of the images; by default those of this name.
        drop_path: Stochastic depth of the last block.
        **changes: Other numbers of the family's configuration.

    Raises:
        ArgumentError: There is no such model or number, or the file does not match.
        StoreError: The file cannot be read.

    Example:
        >>> model = create_model("resnet18", num_classes=10)
        >>> create_model(**model.config.to_dict()).config == model.config
        True
    """
    if name not in _SIZES:
        base, _, tag = name.partition(".")
        hint = near(base, _SIZES)
        if base in _SIZES and tag:
            hint = f"; `{tag}` names weights: use `{base}` and give their file as `pretrained`"
        raise ArgumentError(f"there is no model `{name}`{hint} (`list_models()` names all)")
    family, size = _SIZES[name]
    given = {**changes, "in_chans": in_chans, "drop_path": drop_path}
    given |= {"num_classes": num_classes} if num_classes is not None else {}
    given |= {"image_size": image_size} if image_size is not None else {}
    known = [field.name for field in dataclasses.fields(family.config)]
    for change in given:
        if change not in known:
            raise ArgumentError(
                f"`{name}` has no `{change}`{near(change, known)} (it has {', '.join(known)})"
            )
    model = family.model(family.config(name=name, **{**size, **given}))
    if pretrained is not None:
        load_weights(model, Path(pretrained), new_head=num_classes is not None)
    return model


def list_models(pattern: str | None = None) -> list[str]:
    """Return the names of models, sorted; those that match a pattern such as `swin_*`.

    Example:
        >>> list_models("resnet1*")
        ['resnet101', 'resnet152', 'resnet18', 'resnet18_cifar']
    """
    return sorted(fnmatch.filter(_SIZES, pattern or "*"))
