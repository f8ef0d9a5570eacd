"""Files for other programs hold the numbers of the simulation and are written atomically."""

import csv
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from hotgrid.errors import ArgumentError, MissingPartError, StoreError
from hotgrid.files import whole_file
from hotgrid.grid import Observations, Recorder, Simulation, export, pde
from hotgrid.grid.output import check_export

from .picture_models import ramp
from .vtk_files import decoded


def heat(**options) -> Simulation:
    return Simulation(pde.Heat(), size=(8, 10), compiled=False, device="cpu", **options)


def test_npz_holds_every_field_under_its_name(tmp_path: Path):
    sim = ramp()
    [path] = export(sim, tmp_path, ["npz"])
    with np.load(path) as found:
        assert {*found} == {"u", "pair"}
        for name, x in sim.state.items():
            assert np.array_equal(found[name], x.numpy())


def test_npz_of_a_type_that_numpy_lacks(tmp_path: Path):
    sim = heat(dtype=torch.bfloat16)
    [path] = export(sim, tmp_path, ["npz"])
    assert np.array_equal(np.load(path)["u"], sim.state["u"].float().numpy())


@pytest.mark.parametrize("size", [(12,), (6, 8), (4, 6, 8)])
def test_vti_holds_every_view_and_the_solid_cells(size: tuple[int, ...], tmp_path: Path):
    sim = ramp(size)
    sim.run(3, progress=False)
    [path] = export(sim, tmp_path, ["vti"])
    root, arrays = decoded(path)
    assert root.attrib["type"] == "ImageData"
    assert root.attrib["header_type"] == "UInt64"
    assert {*arrays} == {"signed", "alive", "u", "solid"}
    for name in sim.model.views():
        assert np.array_equal(arrays[name], sim.view(name).float().numpy())
    assert arrays["solid"].mean() == 0.25
    [time] = root.iter("FieldData")
    assert float(time[0].text or "") == 1.5


def test_vti_has_x_last_and_y_before(tmp_path: Path):
    export(ramp((6, 8)), tmp_path, ["vti"])
    [image] = ET.parse(tmp_path / "views.vti").getroot().iter("ImageData")
    assert image.attrib["WholeExtent"] == "0 8 0 6 0 0"


def test_csv_is_every_observable_over_time(tmp_path: Path):
    sim = ramp()
    seen = Observations()
    seen(sim)
    sim.every(4, seen)
    sim.run(10, progress=False)
    seen(sim)
    seen(sim)
    [path] = export(sim, tmp_path, ["csv"], observations=seen)
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["step"] for row in rows] == ["0", "4", "8", "10"]
    assert [float(row["time"]) for row in rows] == [0, 2, 4, 5]
    assert float(rows[-1]["weight"]) == sim.observe()["weight"]
    assert Observations.load(path).rows == seen.rows
    assert Observations.load(path, until=4).rows == seen.rows[:2]


def test_csv_of_a_batch_has_a_column_for_each_run(tmp_path: Path):
    sim = heat(batch=2)
    [path] = export(sim, tmp_path, ["csv"])
    [row] = Observations.load(path).rows
    assert [row["heat[0]"], row["heat[1]"]] == sim.observe()["heat"]


@pytest.mark.parametrize("text", ["", "a,b\n1,2\n", "step,time\n1,x\n", "step,time\n1\n"])
def test_a_damaged_table_is_refused(text: str, tmp_path: Path):
    (tmp_path / "t.csv").write_text(text)
    if text:
        with pytest.raises(ArgumentError, match="damaged or not a table of observables"):
            Observations.load(tmp_path / "t.csv")
    else:
        assert Observations.load(tmp_path / "t.csv").rows == []


def test_png_is_the_view_and_the_observables(tmp_path: Path):
    sim = ramp()
    assert [p.name for p in export(sim, tmp_path, ["png"], view="u")] == ["u.png"]
    seen = Observations()
    for _ in range(3):
        seen(sim)
        sim.step()
    paths = export(sim, tmp_path, ["png"], observations=seen)
    assert [path.name for path in paths] == ["signed.png", "observables.png"]
    for path in paths:
        with Image.open(path) as picture:
            assert picture.size[0] > 500


def test_conserved_numbers_look_conserved():
    rows = [{"step": n, "time": float(n), "mass": 7 + n * 1e-9} for n in range(3)]
    [panel] = Observations(rows).figure("Heat").axes
    low, high = panel.get_ylim()
    assert high - low > 0.01
    [line] = panel.lines
    assert np.array_equal(line.get_ydata(), [row["mass"] for row in rows])


def test_bad_input_writes_nothing(tmp_path: Path):
    with pytest.raises(ArgumentError, match=r"`nzp` is not a format .*did you mean `npz`"):
        export(heat(), tmp_path / "out", ["vti", "nzp"])
    with pytest.raises(ArgumentError, match="no view `w`"):
        export(heat(), tmp_path / "out", ["npz", "png"], view="w")
    assert not (tmp_path / "out").exists()


def test_what_is_missing_is_reported_before_the_run(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    check_export(heat(), ["npz", "csv", "vti"])
    with pytest.raises(MissingPartError, match=r"pip install matplotlib"):
        check_export(heat(), ["npz", "png"])


def test_a_file_that_fails_half_way_leaves_the_old_one(tmp_path: Path):
    path = tmp_path / "x.txt"
    path.write_text("old")

    def write() -> None:
        with whole_file(path) as aside:
            aside.write_text("half")
            raise OSError(28, "No space left on device")

    with pytest.raises(StoreError, match=r"cannot write .*x.txt`: No space left on device"):
        write()
    assert path.read_text() == "old"
    assert [each.name for each in tmp_path.iterdir()] == ["x.txt"]
    with whole_file(path) as aside:
        aside.write_text("new")
    assert path.read_text() == "new"


def test_a_folder_that_cannot_be_made_is_reported(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ArgumentError, match="cannot write"):
        export(heat(), tmp_path / "file" / "out", ["npz"])


def test_a_gif_has_a_frame_every_so_many_steps(tmp_path: Path):
    sim = heat()
    with Recorder(sim, tmp_path / "u.gif", every=10, frames_per_second=20) as film:
        first = film._picture.pixels()
        sim.run(35, progress=False)
        assert not film.path.exists()
    sim.run(10, progress=False)
    assert film.frames == 4
    with Image.open(film.path) as gif:
        assert np.abs(np.asarray(gif.convert("RGB")).astype(int) - first).mean() < 2
        assert (gif.format, gif.n_frames, gif.info["duration"]) == ("GIF", 4, 50)  # pyright: ignore
    assert [each.name for each in tmp_path.iterdir()] == ["u.gif"]


def test_an_mp4_has_the_frames_of_the_run(tmp_path: Path):
    import av

    sim = heat()
    with Recorder(sim, tmp_path / "u.mp4", every=5) as film:
        first = film._picture.pixels()
        sim.run(20, progress=False)
    with av.open(film.path) as video:
        [stream] = video.streams
        assert (stream.codec_context.name, float(stream.average_rate or 0)) == ("h264", 25)
        frames = [frame.to_ndarray(format="rgb24") for frame in video.decode(stream)]
    assert len(frames) == film.frames == 5
    assert frames[0].shape == first.shape
    assert np.abs(frames[0].astype(int) - first).mean() < 4
    assert np.abs(frames[0].astype(int) - frames[-1]).mean() > 4


def test_a_film_is_kept_when_the_run_ends_early(tmp_path: Path):
    sim = heat()
    with pytest.raises(KeyboardInterrupt), Recorder(sim, tmp_path / "u.gif", every=1):
        sim.run(2, progress=False)
        raise KeyboardInterrupt
    with Image.open(tmp_path / "u.gif") as gif:
        assert gif.n_frames == 3  # pyright: ignore[reportAttributeAccessIssue]


def test_a_film_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    film = Recorder(heat(), tmp_path / "u.gif", every=1)
    monkeypatch.setattr(film._picture, "redraw", lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError), film:
        pass
    assert list(tmp_path.iterdir()) == []


def test_films_that_cannot_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(ArgumentError, match=r"must end in \.mp4 or \.gif"):
        Recorder(heat(), "u.avi", every=1)
    with pytest.raises(ArgumentError, match="`every` must be at least 1, got 0"):
        Recorder(heat(), "u.gif", every=0)
    with pytest.raises(ArgumentError, match="no view `w`"):
        Recorder(heat(), "u.gif", every=1, view="w")
    monkeypatch.setitem(sys.modules, "av", None)
    with pytest.raises(
        MissingPartError, match=r"pip install hotgrid\[video\]`, or record a .gif"
    ):
        Recorder(heat(), tmp_path / "u.mp4", every=1)
    assert list(tmp_path.iterdir()) == []
