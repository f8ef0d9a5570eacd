"""neural: cells that hold numbers and react to what is around them. A part of `grid`."""

from ._lenia import Lenia as Lenia
