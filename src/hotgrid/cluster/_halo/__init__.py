"""Halos: which cells travel between blocks, and the exchange."""

from ._halo import HaloExchange as HaloExchange, Needs as Needs, Traffic as Traffic
