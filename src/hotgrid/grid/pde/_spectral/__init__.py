"""Equations solved by Fourier modes, and what their schemes share."""

from ._kuramoto_sivashinsky import KuramotoSivashinsky as KuramotoSivashinsky
from ._navier_stokes import NavierStokes as NavierStokes
from ._split_schroedinger import SplitSchroedinger as SplitSchroedinger
from ._vorticity import Vorticity as Vorticity
