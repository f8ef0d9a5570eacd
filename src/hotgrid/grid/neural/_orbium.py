"""Orbium: the glider of Lenia.

It was found here: a random cloud became it, ran for 1,600 steps and was then rounded to 255
levels. It belongs to a radius of 13, a centre of 0.15 and a width of 0.015, and flies upwards.
"""

import torch
from torch import Tensor

_RADIUS = 13
_LEVELS = 255
_CELLS = (
    "0 0 0 0 0 0 8 14 16 14 8 0 0 0 0 0 0",
    "0 0 0 0 10 29 43 54 57 54 44 30 11 0 0 0 0",
    "0 0 0 20 49 69 86 97 101 97 87 71 51 23 0 0 0",
    "0 0 27 60 79 103 128 137 136 137 130 105 79 61 31 0 0",
    "0 18 61 67 82 127 168 164 151 163 170 130 82 66 61 25 0",
    "0 61 57 39 61 141 208 166 134 164 209 147 64 37 53 63 2",
    "21 76 24 0 26 145 251 165 109 160 252 153 30 0 18 70 31",
    "59 62 0 0 0 129 255 195 116 187 255 138 0 0 0 49 74",
    "102 37 0 0 0 86 250 242 168 230 248 101 0 0 0 18 116",
    "147 7 0 0 0 32 216 232 169 218 213 52 0 0 0 0 160",
    "186 0 0 0 0 0 172 193 138 182 172 0 0 0 0 0 205",
    "204 10 0 0 0 0 132 153 101 146 134 0 0 0 0 2 228",
    "192 43 0 0 0 0 93 114 63 108 95 0 0 0 0 31 216",
    "161 60 16 0 0 0 51 74 30 76 59 0 0 0 11 54 184",
    "120 33 46 17 0 0 26 52 11 56 36 0 0 16 42 36 147",
    "76 0 33 44 35 25 52 78 46 84 65 26 36 44 34 0 99",
    "23 0 0 25 37 44 73 104 78 117 94 45 38 24 0 0 38",
    "0 0 0 0 7 14 47 77 48 93 69 16 6 0 0 0 0",
    "0 0 0 0 0 0 10 22 0 52 31 0 0 0 0 0 0",
)


def orbium(radius: int) -> Tensor:
    """Its cells from 0 to 1, `[rows, columns]`, scaled to a radius."""
    rows = [[int(level) for level in row.split()] for row in _CELLS]
    cells = torch.tensor(rows, dtype=torch.float32) / _LEVELS
    if radius == _RADIUS:
        return cells
    size = [max(1, round(n * radius / _RADIUS)) for n in cells.shape]
    return torch.nn.functional.interpolate(cells[None, None], size=size, mode="area")[0, 0]
