"""rl.watch: a live page of a policy that acts. A part of `hotgrid.train.rl`."""

from ._app import WatchApp as WatchApp
from ._show import Show as Show
