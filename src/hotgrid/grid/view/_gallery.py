"""The gallery: every model with a picture, computed here or before."""

import inspect
import io
import math
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hotgrid.errors import HotgridError, UnstableError
from hotgrid.grid.model import Model, options_of
from hotgrid.grid.output import colours_for, solid_cells
from hotgrid.grid.run import Simulation, models

from ._reduce import few_threads

_MOST_CELLS = 1 << 14
# Steps between two looks, and at once; how many looks there are, and seconds of a processor
# after which it ends, for a model whose picture does not ship.
_STEPS = 100
_AT_ONCE = 10
_LOOKS = 60
_SECONDS = 4.0
# A vortex street takes thousands of steps: its cylinder is thicker on a grid with fewer cells.
_OPTIONS = {"karman": {"diameter": 0.2}}
_CELLS = {"karman": 40 * 160}
# Growing patterns are best seen when grown, and classifiers when they have decided.
_FEWER_LOOKS = {"growing-ca": 6, "digits-ca": 6}
# Made by benchmarks/make_thumbnails.py.
SHIPPED = Path(__file__).with_name("pictures")


def listed() -> dict[str, Any]:
    """Every model, as the gallery lists them."""
    return {
        "models": [
            {
                "name": name,
                "title": model.__name__,
                "family": model.__module__.split(".")[2],
                "summary": (inspect.getdoc(model) or "").partition("\n")[0],
                "size": list(model().size),
                "thumb": f"/thumb/{name}.png",
            }
            for name, model in shown_models().items()
        ]
    }


def shown_models() -> dict[str, type[Model]]:
    """The models that can be made without options."""
    return {
        name: model
        for name, model in models().items()
        if not any(option.needed for option in options_of(model).values())
    }


class Thumbnails:
    """Small pictures of all models; those that do not ship are computed in a thread."""

    def __init__(self) -> None:
        self._made = {each.stem: each.read_bytes() for each in SHIPPED.glob("*.png")}
        self._thread: threading.Thread | None = None
        self._ended = threading.Event()

    def start(self) -> None:
        """Begin to compute, once."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="thumbnails", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """End, without finishing the current picture."""
        self._ended.set()
        # A thread that is still inside torch when Python ends would abort the process.
        if self._thread is not None:
            self._thread.join()

    def get(self, name: str) -> bytes | None:
        """A picture as PNG; None while it is not there, and empty if there will be none."""
        return self._made.get(name)

    def _run(self) -> None:
        for name in shown_models():
            if self._ended.is_set():
                return
            if name in self._made:
                continue
            try:
                self._made[name] = thumbnail(name, self._ended)
            except HotgridError:
                self._made[name] = b""


def thumbnail(
    name: str, ended: threading.Event | None = None, seconds: float = _SECONDS
) -> bytes:
    """A small picture of a model after hundreds of steps, as PNG.

    Args:
        name: The model.
        ended: Set from another thread, it makes no more steps.
        seconds: The processor time after which it makes no more steps.

    Raises:
        HotgridError: The model cannot be run on a small grid.
    """
    from matplotlib.image import imsave

    model = models()[name](**_OPTIONS.get(name, {}))
    most = _CELLS.get(name, _MOST_CELLS if len(model.size) < 3 else 2 * _MOST_CELLS)
    factor = min(1.0, (most / math.prod(model.size)) ** (1 / len(model.size)))
    size = tuple(max(8, round(n * factor)) for n in model.size)
    with torch.no_grad(), few_threads(torch.device("cpu"), 0):
        simulation = Simulation(model, size=size, device="cpu", compiled=False)
        looks = _FEWER_LOOKS.get(name, _LOOKS)
        seen = _grown(simulation, looks, ended or threading.Event(), seconds)
    solid = solid_cells(simulation)
    if seen.ndim == 3:
        seen, solid = seen[len(seen) // 2], None if solid is None else solid[len(solid) // 2]
    numbers = (seen.float() if seen.is_floating_point() else seen).numpy()
    numbers = np.atleast_2d(numbers)
    colours = colours_for(model, model.picture, numbers)
    span = colours.high - colours.low or 1.0
    scaled = np.clip((numbers.astype(np.float64) - colours.low) / span, 0, 1)
    pixels = colours.colour_map()(scaled)
    if solid is not None:
        pixels[np.atleast_2d(solid.numpy())] = (0.62, 0.62, 0.62, 1)
    if model.y_up:
        pixels = pixels[::-1]
    memory = io.BytesIO()
    imsave(memory, np.ascontiguousarray(pixels), format="png")
    return memory.getvalue()


def _grown(
    simulation: Simulation, looks: int, ended: threading.Event, seconds: float
) -> Tensor:
    """A view after many steps, but before it has become the same everywhere."""
    began, seen = time.thread_time(), simulation.view()
    for look in range(looks):
        # Short ones first: some cells die within ten steps.
        left = min(_STEPS, 3 * 2**look)
        try:
            while left and not ended.is_set():
                simulation.run(min(left, _AT_ONCE), progress=False)
                left -= min(left, _AT_ONCE)
        except UnstableError:
            # On so small a grid some flows are, sooner or later.
            break
        now = simulation.view()
        plane = now[len(now) // 2] if now.ndim == 3 else now
        # Cells that have died out, or a flow that has come to rest, do not make a picture.
        if bool((plane == plane.reshape(-1)[0]).all()):
            break
        seen = now
        if ended.is_set() or time.thread_time() - began > seconds:
            break
    return seen
