"""Views over time as VTK files, for ParaView and VisIt."""

import re
from collections.abc import Callable, Iterable
from pathlib import Path

from hotgrid.errors import ArgumentError
from hotgrid.files import whole_file
from hotgrid.grid.forms import GridState
from hotgrid.grid.model import checked_path

from ._export import views_of
from ._vti import write_vti

_FILES = "views"
_COLLECTION = "views.pvd"
_ENTRY = re.compile(rf'file="{_FILES}/([0-9]+)\.vti"')


class VtkSeries:
    """Writes every view of a simulation over time; `every` can call it.

    Each look is one file in `views`, named for its step, and `views.pvd` lists them with their
    times: open that one. All files are written whole or not at all, and one is listed when it
    is there. With a mesh all ranks call it, and the first one writes.

    Arguments:
        folder: Where to; it is made if need be.
        steps: Those that are there already.

    Attributes:
        path: The `.pvd` file.
        steps: Those that were written.

    Example:
        >>> from hotgrid.grid import pde
        >>> sim = Simulation(pde.Heat(), size=(8, 8), compiled=False)
        >>> series = VtkSeries("out")
        >>> sim.every(10, series)
        >>> speed = sim.run(30)
        >>> series.steps, series.path.name
        ([10, 20, 30], 'views.pvd')
    """

    names = (_COLLECTION, _FILES)
    """The files that it writes into the folder."""

    def __init__(self, folder: str | Path, steps: Iterable[int] = ()) -> None:
        self.path = checked_path("folder", folder) / _COLLECTION
        self.steps = list(steps)

    def __call__(self, simulation: GridState) -> None:
        """Write the present state, unless it is already written.

        Raises:
            ArgumentError: The folder cannot be written.
        """
        step = simulation.step_count
        is_new = not self.steps or self.steps[-1] != step
        if is_new:
            views = views_of(simulation)
            if simulation._form.is_primary:
                with whole_file(self._file(step)) as aside:
                    write_vti(aside, simulation.size, views, simulation.time)
            self.steps.append(step)
        if simulation._form.is_primary:
            self._save(simulation._clock().at)

    @staticmethod
    def load(folder: str | Path, until: int | None = None) -> list[int]:
        """The steps that `views.pvd` lists and whose files are there, up to and with a step.

        Raises:
            ArgumentError: The file is missing or is no such list.
        """
        path = Path(folder) / _COLLECTION
        try:
            text = path.read_text(encoding="utf-8")
        except OSError as problem:
            raise ArgumentError(f"cannot read `{path}`: {problem.strerror}") from None
        except UnicodeDecodeError:
            text = ""
        if not text.rstrip().endswith("</VTKFile>"):
            raise ArgumentError(f"`{path}` is damaged or not a collection of VTK files")
        series = VtkSeries(folder)
        found = sorted({int(step) for step in _ENTRY.findall(text)})
        return [n for n in found if (until is None or n <= until) and series._file(n).is_file()]

    def _file(self, step: int) -> Path:
        return self.path.parent / _FILES / f"{step:09}.vti"

    def _save(self, time_at: Callable[[int], float]) -> None:
        entries = [
            f'<DataSet timestep="{time_at(step)!r}" part="0" '
            f'file="{_FILES}/{self._file(step).name}"/>\n'
            for step in self.steps
        ]
        with whole_file(self.path) as aside:
            aside.write_text(
                '<?xml version="1.0"?>\n<VTKFile type="Collection" version="1.0" '
                'byte_order="LittleEndian">\n<Collection>\n'
                f"{''.join(entries)}</Collection>\n</VTKFile>\n",
                encoding="utf-8",
            )
