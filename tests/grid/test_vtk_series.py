"""VTK files over time: one for each look, and a list with the times."""

from pathlib import Path

import numpy as np
import pytest

from hotgrid.errors import ArgumentError
from hotgrid.grid import Simulation, VtkSeries, pde

from .vtk_files import decoded, listed


def heat() -> Simulation:
    return Simulation(
        pde.Heat(), size=(8, 10), compiled=False, device="cpu", form="roll", seed=3
    )


def test_every_look_is_a_file_with_its_time(tmp_path: Path):
    sim, series = heat(), VtkSeries(tmp_path)
    states = {}
    series(sim)
    states[sim.time] = sim.view("u").numpy()
    sim.every(5, series)
    sim.every(5, lambda sim: states.update({sim.time: sim.view("u").numpy()}))
    sim.run(20, progress=False)
    series(sim)
    assert series.steps == [0, 5, 10, 15, 20]
    found = listed(series.path)
    assert [time for time, _ in found] == list(states)
    for time, path in found:
        root, arrays = decoded(path)
        assert np.array_equal(arrays["u"], states[time])
        [data] = root.iter("FieldData")
        assert float(data[0].text or "") == time
    assert {path for _, path in found} == {*(tmp_path / "views").iterdir()}


def test_what_is_listed_is_found_again_up_to_a_step(tmp_path: Path):
    sim, series = heat(), VtkSeries(tmp_path)
    sim.every(5, series)
    sim.run(20, progress=False)
    assert VtkSeries.load(tmp_path) == [5, 10, 15, 20]
    assert VtkSeries.load(tmp_path, until=12) == [5, 10]
    (tmp_path / "views" / "000000010.vti").unlink()
    assert VtkSeries.load(tmp_path, until=15) == [5, 15]


def test_a_damaged_list_is_refused(tmp_path: Path):
    with pytest.raises(ArgumentError, match=r"cannot read .*views\.pvd"):
        VtkSeries.load(tmp_path)
    for text in (b"", b"<VTKFile>", b"\xff\xfe"):
        (tmp_path / "views.pvd").write_bytes(text)
        with pytest.raises(ArgumentError, match="damaged or not a collection of VTK files"):
            VtkSeries.load(tmp_path)
