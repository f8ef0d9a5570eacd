"""A small set of images to learn: discs, squares and crosses on a dark ground."""

from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

KINDS = ("cross", "disc", "square")


def drawn(kind: str, size: int, numbers: np.random.Generator) -> Image.Image:
    image = Image.fromarray((numbers.random((size, size, 3)) * 60).astype("uint8"))
    draw = ImageDraw.Draw(image)
    colour = tuple(int(each) for each in numbers.integers(120, 255, 3))
    side = int(numbers.integers(size // 2, size * 3 // 4))
    x, y = (int(each) for each in numbers.integers(0, size - side, 2))
    if kind == "disc":
        draw.ellipse((x, y, x + side, y + side), fill=colour)
    elif kind == "square":
        draw.rectangle((x, y, x + side, y + side), fill=colour)
    else:
        draw.line((x, y, x + side, y + side), fill=colour, width=2)
        draw.line((x, y + side, x + side, y), fill=colour, width=2)
    return image


def write_shapes(root: Path, count: int, size: int, seed: int = 0) -> Path:
    """Write `count` images of each kind to train on, and a quarter of it to test."""
    numbers = np.random.default_rng(seed)
    for part, many in (("train", count), ("test", count // 4)):
        for kind in KINDS:
            folder = root / part / kind
            folder.mkdir(parents=True)
            for at in range(many):
                drawn(kind, size, numbers).save(folder / f"{at}.png")
    return root
