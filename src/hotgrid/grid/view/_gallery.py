"""The gallery: every model with a picture that was computed here."""

import inspect
import io
import threading
from typing import Any

import numpy as np
import torch

from hotgrid.errors import HotgridError
from hotgrid.grid.model import Model, options_of
from hotgrid.grid.output import colour_map, colours_of, solid_cells
from hotgrid.grid.run import Simulation, models

_SIDE = 128
_STEPS = 400


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
            for name, model in _shown().items()
        ]
    }


def _shown() -> dict[str, type[Model]]:
    """The models that can be made without options."""
    return {
        name: model
        for name, model in models().items()
        if not any(option.needed for option in options_of(model).values())
    }


class Thumbnails:
    """Small pictures of all models, computed one after the other in a thread."""

    def __init__(self) -> None:
        self._made: dict[str, bytes] = {}
        self._thread: threading.Thread | None = None
        self._ended = threading.Event()

    def start(self) -> None:
        """Begin to compute, once."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="thumbnails", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """End after the picture under way."""
        self._ended.set()

    def get(self, name: str) -> bytes | None:
        """A picture as PNG; None while it is not there."""
        return self._made.get(name)

    def _run(self) -> None:
        for name in _shown():
            if self._ended.is_set():
                return
            try:
                self._made[name] = thumbnail(name)
            except HotgridError:
                continue


def thumbnail(name: str) -> bytes:
    """A small picture of a model after some hundred steps, as PNG.

    Raises:
        HotgridError: The model cannot be run on a small grid.
    """
    from matplotlib.image import imsave

    model = models()[name]()
    side = max(model.size)
    factor = min(1.0, (_SIDE if len(model.size) == 2 else 48) / min(model.size))
    size = tuple(max(8, round(n * factor)) for n in model.size)
    simulation = Simulation(model, size=size, device="cpu", compiled=False)
    with torch.no_grad():
        simulation.run(max(1, round(_STEPS * min(1.0, 256 / side))), progress=False)
        seen = simulation.view()
    solid = solid_cells(simulation)
    if seen.ndim == 3:
        seen, solid = seen[len(seen) // 2], None if solid is None else solid[len(solid) // 2]
    numbers = (seen.float() if seen.is_floating_point() else seen).numpy()
    numbers = np.atleast_2d(numbers)
    colours = colours_of(numbers)
    span = colours.high - colours.low or 1.0
    scaled = np.clip((numbers.astype(np.float64) - colours.low) / span, 0, 1)
    pixels = colour_map(colours)(scaled)
    if solid is not None:
        pixels[np.atleast_2d(solid.numpy())] = (0.62, 0.62, 0.62, 1)
    if model.y_up:
        pixels = pixels[::-1]
    memory = io.BytesIO()
    imsave(memory, np.ascontiguousarray(pixels), format="png")
    return memory.getvalue()
