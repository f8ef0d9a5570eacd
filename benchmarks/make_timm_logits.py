"""Record what timm computes, for tests that run without it.

    python benchmarks/make_timm_logits.py [--out FILE]

timm and torchvision must be importable. Every model that hotgrid.vision shares with timm is
described by a hash of its names and shapes, its parameters, and a hash of its depths. Those
with up to 100 million parameters, and a larger one of some families, also get the weights of
`named_weights.py` and a small image; their logits and values of their maps are kept.
"""

import json
from pathlib import Path
from typing import Any

import torch
from named_weights import named_image, named_weights
from options import parser
from peers import timm_models

from hotgrid.vision import create_model, list_models

OUT = Path(__file__).parents[1] / "tests" / "vision" / "timm_logits.json"
CIFAR = {"img_size": 32, "patch_size": 2, "window_size": 4, "embed_dim": 96, "num_classes": 10}
CIFAR = {**CIFAR, "depths": (2, 6, 4), "num_heads": (3, 6, 12)}
# What timm calls the models that only hotgrid has a name for.
OURS = {
    "swin_cifar": ("swin_tiny_patch4_window7_224", CIFAR),
    "swinv2_cifar": ("swinv2_tiny_window8_256", CIFAR),
}
# Changes here, and the same for timm.
CHANGED: dict[str, list[tuple[dict[str, Any], dict[str, Any]]]] = {
    "resnet18": [({}, {})],
    "resnet26": [({"image_size": 97}, {})],
    "swin_tiny_patch4_window7_224": [
        ({}, {}),
        # Maps of 50, 25, 13 and 7: padded windows, and odd sides to merge.
        ({"image_size": 200}, {"img_size": 200}),
    ],
    "swin_s3_tiny_224": [({}, {})],
    "swin_cifar": [({}, {})],
    "swinv2_tiny_window8_256": [
        ({}, {}),
        (
            {"image_size": 200, "trained_windows": (6, 6, 6, 3)},
            {"img_size": 200, "pretrained_window_sizes": (6, 6, 6, 3)},
        ),
    ],
    "swinv2_cifar": [({}, {})],
    "vit_tiny_patch16_224": [({}, {}), ({"image_size": 80}, {"img_size": 80})],
    "vit_small_patch32_224": [({}, {})],
    "convnext_atto": [({}, {}), ({"image_size": 103}, {})],
    "convnext_tiny": [({"image_size": 128}, {})],
    "convnextv2_atto": [({}, {})],
    "convnextv2_tiny": [({"image_size": 64}, {})],
}

MOST = 100_000_000
LARGE = ("swin_large_patch4_window7_224", "swinv2_large_window12_192", "convnextv2_large")


def reduced(name: str, size: int) -> int:
    """A small image that a model takes: its maps have several windows of every stage."""
    if name.startswith("swin"):
        return size // 2
    if name.startswith(("vit", "deit")):
        with torch.device("meta"):
            config: Any = create_model(name).config
        return 5 * config.patch
    return 64


def changes_of(name: str, size: int, parameters: int) -> list[tuple[dict[str, Any], ...]]:
    """The changes to ask a model and timm's with."""
    if name in CHANGED:
        return [*CHANGED[name]]
    if parameters > MOST and name not in LARGE:
        return []
    side = reduced(name, size)
    # Those of timm that take any image have no such option.
    fixed = name.startswith(("swin", "vit", "deit"))
    return [({"image_size": side}, {"img_size": side} if fixed else {})]


def quarters(name: str, depth: int) -> list[int] | None:
    """Which maps of timm are those of hotgrid's stages; None for the last of each stage."""
    if name.startswith(("vit", "deit")):
        return [depth * (stage + 1) // 4 - 1 for stage in range(4)]
    return [1, 2, 3, 4] if name.startswith("resnet") else None


def asked(
    name: str, changes: dict[str, Any], theirs: dict[str, Any], size: int
) -> dict[str, Any]:
    peer, base = OURS.get(name, (name, {}))
    model = timm_models.make(peer, **{**base, **theirs})
    shapes = {key: each.shape for key, each in model.state_dict().items()}
    model.load_state_dict(named_weights(shapes))
    depth = len(getattr(model, "blocks", ()))
    images = named_image(changes.get("image_size", size))
    return {"changes": changes, **timm_models.answers(model, images, quarters(name, depth))}


def main() -> None:
    options = parser(__doc__, ["cpu"])
    options.add_argument("--out", type=Path, default=OUT)
    out = options.parse_args().out
    version = json.dumps(timm_models.version())
    models: dict[str, Any] = {}
    for name in list_models():
        with torch.device("meta"):
            size = create_model(name).config.image_size
        peer, base = OURS.get(name, (name, {}))
        try:
            with torch.device("meta"):
                shared = timm_models.make(peer, **base)
        except RuntimeError as problem:
            print(f"{name}: timm has none ({problem})")
            continue
        models[name] = timm_models.described(shared)
        count = models[name]["parameters"]
        models[name]["answers"] = [
            asked(name, changes, theirs, size)
            for changes, theirs in changes_of(name, size, count)
        ]
        print(name, models[name]["parameters"], len(models[name]["answers"]))
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(models[name])}" for name in models)
    out.write_text(f'{{\n "timm": {version},\n "models": {{\n{lines}\n }}\n}}\n')


if __name__ == "__main__":
    main()
