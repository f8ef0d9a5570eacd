"""The options of each op of `hotgrid tune`, for its help, which must not import torch.

A test compares it with the ops themselves.
"""

from collections.abc import Mapping
from types import MappingProxyType

OPTIONS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "codebook": ("rows x cols", "form=pq|rows|int4|int8 bits=4.0 count=1"),
        "convolve": ("... x space", "radius=1 dims=2 boundary=periodic|zero"),
        "gemv": ("rows x cols", "count=1 columns=false|true"),
        "topk": ("any", "k=1 dim=-1 largest=true|false sorted=true|false"),
    }
)
"""The shape and the options of an op, by its name."""

EXAMPLES: Mapping[str, str] = MappingProxyType(
    {
        "codebook": "hotgrid tune --explain codebook 3072x1024 --set form=rows",
        "convolve": "hotgrid tune --explain convolve 512x512 --set radius=8",
        "gemv": "hotgrid tune --fill gemv 4096x4096 --set count=4 --dtype bfloat16",
        "topk": "hotgrid tune --explain topk 1024x4096 --k 8 --dim 0",
    }
)
"""A command for each op."""


def options_text() -> str:
    """Return a line for each op."""
    rows = [(name, *columns) for name, columns in OPTIONS.items()]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  " + "  ".join(cell.ljust(n) for cell, n in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )


def examples_text() -> str:
    """Return the commands, one on each line."""
    return "\n".join(f"  {each}" for each in EXAMPLES.values())
