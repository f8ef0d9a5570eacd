"""Fourier transforms of grids that are split over ranks."""

from ._grid_fourier import GridFourier as GridFourier
from ._layouts import Stage as Stage, stages as stages
from ._redistribute import redistribute as redistribute
