"""Pillow's operations on a batch, each sample with an operation of its own."""

from ._operate import PixelOp as PixelOp, operate as operate
from ._tables import colours as colours, grey as grey
