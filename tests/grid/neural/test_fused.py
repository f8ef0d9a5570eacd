"""The fused step of neural cells, under Triton's interpreter and through its compiler."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from hotgrid.errors import ArgumentError
from hotgrid.grid import Simulation
from hotgrid.grid.neural import CellNetwork, NeuralCells


class Cells(NeuralCells):
    def initial(self, size, generator):
        return self.begun(torch.rand(16, *size, generator=generator), generator)


def run_apart(script: str, **environment: str) -> str:
    """In a process of its own: how Triton works is decided when it is imported."""
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name(script))],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.long
def test_the_fused_step_agrees_with_the_plain_one():
    assert "8 cases, wrong: []" in run_apart("triton_cells_twins.py", TRITON_INTERPRET="1")


@pytest.mark.long
def test_the_fused_step_compiles_to_tensor_cores(tmp_path: Path):
    found = run_apart("triton_cells_compiles.py", TRITON_CACHE_DIR=str(tmp_path))
    assert "3 kernels" in found


def test_it_says_why_it_cannot_run():
    with pytest.raises(ArgumentError, match="`fused` cannot run here: it runs on a GPU, not"):
        Simulation(Cells(CellNetwork.random(16, 32)), size=(8, 8), device="cpu", form="fused")
