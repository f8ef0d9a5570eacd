"""Models of timm: with given weights, their logits and maps; and on no device, their shapes.

timm imports torchvision, whose operators in C++ fail to load beside a torch that was built for
other devices. It needs none of them, so two are declared here where they are missing.
"""

import hashlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

import torch
from torch import Tensor, nn

_NMS = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"


try:
    import torchvision  # noqa: F401
except (ImportError, RuntimeError):
    for _operator in ("nms", "qnms"):
        # An error says that it is there already.
        with suppress(RuntimeError):
            torch.library.define(f"torchvision::{_operator}", _NMS)


def make(name: str, **options: Any) -> nn.Module:
    """A model of timm."""
    import timm

    return timm.create_model(name, **options)


def version() -> str:
    """The version of timm."""
    import timm

    return timm.__version__


def digest(lines: Iterable[str]) -> str:
    """A short hash of lines, in any order."""
    return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()[:16]


def described(model: nn.Module) -> dict[str, Any]:
    """What a model has: names and shapes, parameters, and depths for layer-wise decay."""
    from timm.models._manipulate import group_parameters

    matcher: Any = model.group_matcher(coarse=False)  # pyright: ignore[reportCallIssue]
    depths: Mapping[str, int] = group_parameters(model, matcher, reverse=True)
    weights = {name: list(each.shape) for name, each in model.state_dict().items()}
    return {
        "weights": digest(f"{name} {shape}" for name, shape in weights.items()),
        "parameters": sum(each.numel() for each in model.parameters()),
        "depths": digest(f"{name} {depth}" for name, depth in depths.items()),
    }


@torch.no_grad()
def answers(model: nn.Module, images: Tensor, stages: list[int] | None) -> dict[str, Any]:
    """Logits of a model, and for the map of each stage its shape and some values."""
    model.eval()
    both: Any = model
    maps = both.forward_intermediates(images, indices=stages, intermediates_only=True)
    return {
        "logits": model(images)[:, :6].tolist(),
        "maps": [
            {"shape": list(each.shape), "values": each.flatten()[:: each.numel() // 7].tolist()}
            for each in maps
        ],
    }
