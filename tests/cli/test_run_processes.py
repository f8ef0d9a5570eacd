"""`hotgrid run` as real processes: ranks of a mesh, and errors before a run."""

import subprocess
import sys
from pathlib import Path

import pytest

from hotgrid.grid import Observations


def test_a_mesh_starts_its_ranks_and_writes_the_same_files(tmp_path: Path):
    """Two real processes; only rank 0 prints and writes."""
    command = [sys.executable, "-m", "hotgrid", "-c", "compile.enabled=off", "run", "heat"]
    command += ["--size", "24x16", "--steps", "30", "--export", "npz,csv"]
    outs = [tmp_path / "cut", tmp_path / "whole"]
    said = []
    for out, more in zip(outs, (["--mesh", "2x1"], []), strict=True):
        done = subprocess.run(
            [*command, "--out", str(out), *more], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        said.append(done.stdout)
    assert said[0].count("Heat on 24x16") == 1
    assert (outs[0] / "fields.npz").read_bytes() == (outs[1] / "fields.npz").read_bytes()
    # Sums of parts round differently.
    cut, whole = (Observations.load(out / "observables.csv").rows for out in outs)
    assert cut == [pytest.approx(row, rel=1e-12) for row in whole]


def test_a_mesh_that_is_invalid_is_reported():
    command = [sys.executable, "-m", "hotgrid", "run", "heat", "--mesh", "2y2"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "mesh `2y2` must be whole numbers" in done.stderr


def test_a_folder_that_cannot_be_written_is_reported_before_the_run(tmp_path: Path):
    (tmp_path / "file").write_text("")
    command = [sys.executable, "-m", "hotgrid", "run", "heat", "--steps", "100000000"]
    done = subprocess.run(
        [*command, "--out", str(tmp_path / "file" / "out")],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 1
    assert f"cannot write into `{tmp_path / 'file' / 'out'}`" in done.stderr
