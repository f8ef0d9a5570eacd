"""A simulation written as files for other programs."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import numpy as np
from torch import Tensor

from hotgrid.errors import ArgumentError, near
from hotgrid.files import whole_file
from hotgrid.grid.forms import GridState
from hotgrid.grid.model import checked_path, pictured

from ._observations import Observations
from ._picture import Picture, need_matplotlib, solid_cells, view_name
from ._vti import write_vti

Writer = Callable[[GridState, Path, str | None, Observations], list[Path]]


def check_export(
    simulation: GridState, formats: Iterable[str], view: str | None = None
) -> None:
    """Raise what `export` would raise before it writes; to check before a long run.

    Example:
        >>> from hotgrid.grid import pde
        >>> check_export(Simulation(pde.Heat(), compiled=False), ["npz", "png"])

    Raises:
        ArgumentError: A format or the view is unknown.
        MissingPartError: A format needs something that is not installed.
    """
    names = _named(formats)
    for name in names:
        if name not in _WRITERS:
            raise ArgumentError(
                f"`{name}` is not a format of export{near(name, _WRITERS)} "
                f"(the formats are {', '.join(_WRITERS)})"
            )
        if name == "png":
            need_matplotlib()
    if view is not None or "png" in names:
        view_name(simulation, view)


def export_names(
    simulation: GridState, formats: Iterable[str], view: str | None = None
) -> list[str]:
    """The names of the files that `export` can write.

    Example:
        >>> from hotgrid.grid import pde
        >>> export_names(Simulation(pde.Heat(), compiled=False), ["npz", "png"])
        ['fields.npz', 'u.png', 'observables.png']

    Raises:
        ArgumentError: A format or the view is unknown.
        MissingPartError: A format needs something that is not installed.
    """
    formats = _named(formats)
    check_export(simulation, formats, view)
    picture = f"{view_name(simulation, view)}.png" if "png" in formats else ""
    names = {
        "npz": ["fields.npz"],
        "csv": ["observables.csv"],
        "png": [picture, "observables.png"],
        "vti": ["views.vti"],
    }
    return [name for each in formats for name in names[each]]


def export(
    simulation: GridState,
    folder: str | Path,
    formats: Iterable[str],
    *,
    view: str | None = None,
    observations: Observations | None = None,
) -> list[Path]:
    """Write a simulation into a folder, each file atomically.

    - `npz`: `fields.npz`, every field under its name, for NumPy.
    - `csv`: `observables.csv`, the observables over time.
    - `png`: a picture of the view under its name, and `observables.png` where there
      are observations.
    - `vti`: `views.vti`, every view and the solid cells, for ParaView and VisIt; of a
      batch the first run.

    Arguments:
        simulation: What is written.
        folder: Where to; it is created if needed.
        formats: Any of the above.
        view: The view of the picture; by default the model's own choice.
        observations: What was observed during the run; by default only the present state.

    Returns:
        The paths of the files.

    Example:
        >>> from hotgrid.grid import pde
        >>> sim = Simulation(pde.Heat(), size=(8, 8), compiled=False)
        >>> [path.name for path in export(sim, "out", ["npz", "vti"])]
        ['fields.npz', 'views.vti']

    Raises:
        ArgumentError: A format or the view is unknown, or a file cannot be written.
        MissingPartError: A format needs something that is not installed.
    """
    formats, folder = _named(formats), checked_path("folder", folder)
    check_export(simulation, formats, view)
    if observations is None:
        observations = Observations()
        observations(simulation)
    writers = [_WRITERS[name] for name in formats]
    return [
        path for writer in writers for path in writer(simulation, folder, view, observations)
    ]


def _named(formats: Iterable[str]) -> list[str]:
    """Every format once."""
    if isinstance(formats, str) or not isinstance(formats, Iterable):
        raise ArgumentError(f"`formats` is a list, such as ['npz', 'png'], got {formats!r}")
    return list(dict.fromkeys(formats))


def _npz(simulation: GridState, folder: Path, *_: object) -> list[Path]:
    fields = {name: _array(x) for name, x in simulation.state.items()}
    with whole_file(folder / "fields.npz") as aside, aside.open("wb") as file:
        np.savez(file, **fields)  # pyright: ignore[reportArgumentType]
    return [folder / "fields.npz"]


def _csv(
    simulation: GridState, folder: Path, view: str | None, observations: Observations
) -> list[Path]:
    return [observations.save(folder / "observables.csv")]


def _png(
    simulation: GridState, folder: Path, view: str | None, observations: Observations
) -> list[Path]:
    picture = Picture(simulation, view)
    written = [picture.save(folder / f"{picture.view}.png")]
    if len(observations.rows) > 1 and simulation.model.observables():
        path = folder / "observables.png"
        with whole_file(path) as aside:
            observations.figure(type(simulation.model).__name__).savefig(aside)
        written.append(path)
    return written


def _vti(simulation: GridState, folder: Path, *_: object) -> list[Path]:
    path = folder / "views.vti"
    with whole_file(path) as aside:
        write_vti(aside, simulation.size, views_of(simulation), simulation.time)
    return [path]


def views_of(simulation: GridState) -> dict[str, np.ndarray]:
    """Every view of the first run as an array, and the solid cells."""
    state = next(simulation._looks())
    found = {
        name: pictured(simulation.model, name, each(state))
        for name, each in simulation.model.views().items()
    }
    solid = solid_cells(simulation)
    if solid is not None:
        found.setdefault("solid", solid)
    return {name: _array(x.float()) for name, x in found.items()}


def _array(x: Tensor) -> np.ndarray:
    """A tensor for NumPy, which has no bfloat16."""
    x = x.detach().cpu()
    return (x.float() if x.dtype.itemsize == 2 and x.is_floating_point() else x).numpy()


_WRITERS: Mapping[str, Writer] = {"npz": _npz, "csv": _csv, "png": _png, "vti": _vti}
