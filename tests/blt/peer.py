"""The byte-latent transformer of transformers, which judges ours."""

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def without_torchvision() -> Iterator[None]:
    """transformers takes torchvision where it finds one, even one for another torch."""
    modules: dict[str, Any] = sys.modules
    if "torchvision" in modules:
        yield
        return
    modules["torchvision"] = None
    try:
        yield
    finally:
        del modules["torchvision"]


with without_torchvision(), warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from transformers.models.blt.configuration_blt import BltConfig, BltPatcherConfig
    from transformers.models.blt.modeling_blt import BltForCausalLM, BltPatcher

__all__ = ["BltConfig", "BltForCausalLM", "BltPatcher", "BltPatcherConfig"]
