"""The first message to a page: everything that it needs to draw its controls."""

import base64
import inspect
import math
from functools import cache
from typing import Any

import numpy as np

from hotgrid.grid.model import Parameter
from hotgrid.grid.output import CODED

from ._live import LiveRun
from ._orders import MAPS


def hello(live: LiveRun, viewer: int) -> dict[str, Any]:
    """The first message to a viewer."""
    simulation = live.simulation
    model = simulation.model
    views = list(model.views())
    brushes = model.brushes() if simulation._setting.batch == () else ()
    return {
        "type": "hello",
        "viewer": viewer,
        "model": live.name,
        "title": type(model).__name__,
        "summary": (inspect.getdoc(type(model)) or "").partition("\n")[0],
        "size": list(simulation.size),
        "rank": len(simulation.size),
        "y_up": model.y_up,
        "views": views,
        "view": model.picture or views[0],
        "units": {view: unit for view in views if (unit := model.unit_of(view))},
        "flow": {"velocity_x", "velocity_y"} <= {*views},
        "parameters": [
            {
                "name": name,
                "meaning": each.meaning,
                "unit": each.unit,
                "low": _least(each),
                "above": _finite(each.above),
                "high": _finite(each.high),
                "default": each.default,
                "value": model.parameters[name],
            }
            for name, each in type(model)._parameters.items()
        ],
        "brushes": [
            {
                "name": each.name,
                "label": each.label,
                "kind": each.kind,
                "low": each.low,
                "high": each.high,
                "value": each.value,
                "radius": each.radius,
            }
            for each in brushes
        ],
        "rle": any(each.name == "cells" for each in brushes) and len(simulation.size) == 2,
        "observables": list(model.observables()),
        "conserved": list(model.conserved),
        "seed": live.seed,
        "device": str(simulation.device),
        "dtype": str(simulation._setting.dtype).removeprefix("torch."),
        "form": simulation.form_name,
        "maps": _maps(),
        "saved": live.saved(),
        "time_step": model.time_step,
        "command": live.command(),
        "link": live.link(),
    }


def _least(each: Parameter) -> float | None:
    """The least value that a slider offers; a bound that is excluded is not one."""
    if each.low > each.above or each.above == -math.inf:
        return _finite(each.low)
    return each.above + (each.default - each.above) / 1000


def _finite(x: float) -> float | None:
    return x if math.isfinite(x) else None


@cache
def _maps() -> dict[str, str]:
    """Colour maps as 256 colours of three bytes each, in base64."""
    from matplotlib import colormaps

    places = np.linspace(0, 1, 256)
    found = {name: (255 * colormaps[name](places)[:, :3]).round() for name in MAPS}
    # The page spreads 255 levels over 256 colours, and each has to find its own.
    found[CODED.kind] = CODED.palette()[(254 * places).round().astype(int)]
    return {
        name: base64.b64encode(colours.astype(np.uint8).tobytes()).decode()
        for name, colours in found.items()
    }
