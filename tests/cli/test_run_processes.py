"""`hotgrid run` with ranks that are real processes, and errors before a run."""

import subprocess
import sys
from pathlib import Path

import pytest

from hotgrid.grid import Observations

from .command import run


@pytest.mark.long
def test_a_mesh_starts_its_ranks_and_writes_the_same_files(tmp_path: Path):
    """Two real processes; only rank 0 prints and writes."""
    arguments = ["-c", "compile.enabled=off", "run", "heat", "--size", "24x16"]
    arguments += ["--steps", "30", "--export", "npz,csv"]
    outs = [tmp_path / "cut", tmp_path / "whole"]
    assert run([*arguments, "--out", str(outs[1])]) == 0
    done = subprocess.run(
        [sys.executable, "-m", "hotgrid", *arguments, "--out", str(outs[0]), "--mesh", "2x1"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("Heat on 24x16") == 1
    assert (outs[0] / "fields.npz").read_bytes() == (outs[1] / "fields.npz").read_bytes()
    # Sums of parts round differently.
    cut, whole = (Observations.load(out / "observables.csv").rows for out in outs)
    assert cut == [pytest.approx(row, rel=1e-12) for row in whole]


def test_a_mesh_that_is_invalid_is_reported(capsys: pytest.CaptureFixture[str]):
    assert run(["run", "heat", "--mesh", "2y2"]) == 1
    assert "mesh `2y2` must be whole numbers" in capsys.readouterr().err


def test_a_folder_that_cannot_be_written_is_reported_before_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    (tmp_path / "file").write_text("")
    out = tmp_path / "file" / "out"
    assert run(["run", "heat", "--steps", "100000000", "--out", str(out)]) == 1
    assert f"cannot write into `{out}`" in capsys.readouterr().err
