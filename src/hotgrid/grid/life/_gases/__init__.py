"""Lattice gases: particles that fly from cell to cell and collide there."""

from ._fhp import FHP as FHP
from ._hpp import HPP as HPP
