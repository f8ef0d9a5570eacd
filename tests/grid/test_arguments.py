"""Arguments that were once let through, or refused without need."""

import os
from pathlib import Path

import numpy as np
import pytest
import torch

from hotgrid.config import override
from hotgrid.errors import ArgumentError
from hotgrid.grid import Simulation, find_model, lbm, pde
from hotgrid.grid.forms._form import _keep_compiled_code


@pytest.mark.parametrize("options", [{"dtype": torch.int32}, {"storage": torch.int8}])
def test_arithmetic_is_done_in_floating_numbers(options):
    with pytest.raises(ArgumentError, match="must be a floating type"):
        Simulation(pde.Heat(), size=(8, 8), compiled=False, **options)


def test_numbers_of_numpy_are_numbers():
    sim = Simulation(
        pde.Heat(rate=np.float32(0.125)), size=(np.int64(8), np.int64(6)), compiled=False
    )
    assert sim.size == (8, 6)
    assert sim.model.parameters["rate"] == 0.125


def test_a_state_is_not_taken_up_by_another_geometry(tmp_path: Path):
    def flow(middle: float, radius: float) -> Simulation:
        solid = lbm.HalfWay(lbm.ball((middle, middle), radius))
        return Simulation(lbm.Flow(boundaries=[solid]), size=(16, 16), compiled=False)

    path = flow(4, 2).save(tmp_path / "state")
    flow(4, 2).load(path)
    with pytest.raises(ArgumentError, match="by another simulation"):
        flow(7, 3).load(path)


def test_a_solid_is_not_where_a_picture_is_transparent():
    picture = torch.zeros(4, 4, 4)
    picture[1:3, 1:3, 3] = 1.0
    solid = lbm.from_image(picture)((4, 4))
    assert solid.sum() == 4
    assert solid[1:3, 1:3].all()


def test_a_file_can_import_what_lies_beside_it(tmp_path: Path):
    (tmp_path / "speeds_of_mine.py").write_text("RATE = 0.2\n")
    file = tmp_path / "model_of_mine.py"
    file.write_text(
        "from speeds_of_mine import RATE\n"
        "from hotgrid.grid.pde import Heat\n"
        "class Mine(Heat):\n"
        "    quick = RATE\n"
    )
    assert find_model(f"{file}:Mine").quick == 0.2


def test_compiled_code_is_kept_where_the_settings_say(tmp_path: Path, monkeypatch):
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR", raising=False)
    with override({"compile.cache": "none"}):
        _keep_compiled_code()
    assert "TORCHINDUCTOR_CACHE_DIR" not in os.environ
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with override({"compile.cache": "global"}):
        _keep_compiled_code()
    kept = Path(os.environ.pop("TORCHINDUCTOR_CACHE_DIR"))
    assert kept.is_dir()
    assert tmp_path in kept.parents


@pytest.mark.parametrize("folder", ["file/below", ""])
def test_a_cache_that_cannot_be_written_is_passed_over_with_one_warning(
    folder: str, tmp_path: Path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", folder)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with override({"compile.cache": "global"}):
        _keep_compiled_code()
        _keep_compiled_code()
    assert tmp_path / "cache" in Path(os.environ["TORCHINDUCTOR_CACHE_DIR"]).parents
    [warning] = capsys.readouterr().err.splitlines()
    assert f"the `{folder}` of TORCHINDUCTOR_CACHE_DIR, which cannot be written" in warning


def test_a_writable_cache_of_your_own_is_kept(tmp_path: Path, monkeypatch, capsys):
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "mine"))
    _keep_compiled_code()
    assert os.environ["TORCHINDUCTOR_CACHE_DIR"] == str(tmp_path / "mine")
    assert capsys.readouterr().err == ""
