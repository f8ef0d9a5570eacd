"""The fused step of neural cells, under Triton's interpreter and through its compiler."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from hotgrid.errors import ArgumentError
from hotgrid.grid import Simulation
from hotgrid.grid.neural import CellNetwork, NeuralCells


class Cells(NeuralCells):
    def initial(self, size, generator):
        return self.begun(torch.rand(16, *size, generator=generator), generator)


@pytest.mark.long
def test_the_fused_step_agrees_with_the_plain_one(run_apart: Callable[..., str]):
    assert "8 cases, wrong: []" in run_apart("triton_cells_twins.py", TRITON_INTERPRET="1")


@pytest.mark.long
def test_the_fused_step_compiles_to_tensor_cores(run_apart: Callable[..., str], tmp_path: Path):
    found = run_apart("triton_cells_compiles.py", TRITON_CACHE_DIR=str(tmp_path))
    assert "3 kernels" in found


def test_it_says_why_it_cannot_run():
    with pytest.raises(ArgumentError, match="`fused` cannot run here: it runs on a GPU, not"):
        Simulation(Cells(CellNetwork.random(16, 32)), size=(8, 8), device="cpu", form="fused")
