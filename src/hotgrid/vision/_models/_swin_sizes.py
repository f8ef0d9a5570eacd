"""Sizes of Swin transformers, by name."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

_TINY = {"embed_dim": 96, "depths": (2, 2, 6, 2), "heads": (3, 6, 12, 24)}
_SMALL = {"embed_dim": 96, "depths": (2, 2, 18, 2), "heads": (3, 6, 12, 24)}
_BASE = {"embed_dim": 128, "depths": (2, 2, 18, 2), "heads": (4, 8, 16, 32)}
_LARGE = {"embed_dim": 192, "depths": (2, 2, 18, 2), "heads": (6, 12, 24, 48)}
_S3_BASE = {"embed_dim": 96, "depths": (2, 2, 30, 2), "heads": (3, 6, 12, 24)}
# The published weights of these names are for the classes of ImageNet-22k.
_IN22K = {"num_classes": 21841}
_CIFAR = {
    "image_size": 32,
    "num_classes": 10,
    "patch": 2,
    "embed_dim": 96,
    "depths": (2, 6, 4),
    "heads": (3, 6, 12),
    "windows": 4,
}


def _v2(size: Mapping[str, Any], window: int, image: int, trained: int = 0) -> dict[str, Any]:
    # In training the last stage had a map of half a window.
    windows = (trained, trained, trained, trained // 2) if trained else ()
    made = {"version": 2, "windows": window, "image_size": image, "trained_windows": windows}
    return {**size, **made}


SWINS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "swin_tiny_patch4_window7_224": _TINY,
        "swin_small_patch4_window7_224": _SMALL,
        "swin_base_patch4_window7_224": _BASE,
        "swin_base_patch4_window12_384": {**_BASE, "windows": 12, "image_size": 384},
        "swin_large_patch4_window7_224": _LARGE,
        "swin_large_patch4_window12_384": {**_LARGE, "windows": 12, "image_size": 384},
        "swin_s3_tiny_224": {**_TINY, "windows": (7, 7, 14, 7)},
        "swin_s3_small_224": {**_SMALL, "windows": (14, 14, 14, 7)},
        "swin_s3_base_224": {**_S3_BASE, "windows": (7, 7, 14, 7)},
        "swin_cifar": _CIFAR,
        "swinv2_tiny_window8_256": _v2(_TINY, 8, 256),
        "swinv2_tiny_window16_256": _v2(_TINY, 16, 256),
        "swinv2_small_window8_256": _v2(_SMALL, 8, 256),
        "swinv2_small_window16_256": _v2(_SMALL, 16, 256),
        "swinv2_base_window8_256": _v2(_BASE, 8, 256),
        "swinv2_base_window16_256": _v2(_BASE, 16, 256),
        "swinv2_base_window12_192": {**_v2(_BASE, 12, 192), **_IN22K},
        "swinv2_base_window12to16_192to256": _v2(_BASE, 16, 256, 12),
        "swinv2_base_window12to24_192to384": _v2(_BASE, 24, 384, 12),
        "swinv2_large_window12_192": {**_v2(_LARGE, 12, 192), **_IN22K},
        "swinv2_large_window12to16_192to256": _v2(_LARGE, 16, 256, 12),
        "swinv2_large_window12to24_192to384": _v2(_LARGE, 24, 384, 12),
        "swinv2_cifar": {**_CIFAR, "version": 2},
    }
)
"""Sizes of Swin, by name."""
