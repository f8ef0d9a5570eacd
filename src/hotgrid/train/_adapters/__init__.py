"""Adapters, freezing and new heads, by selector."""

from ._freeze import (
    Trainable as Trainable,
    freeze as freeze,
    rehead as rehead,
    trainable as trainable,
)
from ._lora import LoRA as LoRA, lora as lora, merge_lora as merge_lora
