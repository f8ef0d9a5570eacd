"""The flower: it grows, it is cut, it heals."""

import pytest
import torch

from hotgrid.errors import ArgumentError
from hotgrid.grid import Simulation, models
from hotgrid.grid.neural import CellNetwork, GrowingCA
from hotgrid.grid.validate import validate


def test_it_grows_and_heals():
    """As `hotgrid validate` states it: the picture, from one cell and after a cut."""
    rows = list(validate(quick=True, device="cpu", only=["growing"]))
    assert [row.passed for row in rows] == [True, True]


def test_it_is_in_the_catalogue():
    assert models()["growing-ca"] is GrowingCA


def test_a_stroke_erases_all_channels_and_another_sows():
    sim = Simulation(GrowingCA(), size=(40, 40), compiled=False, device="cpu")
    sim.run(12)
    mask = torch.zeros(40, 40, dtype=torch.bool)
    mask[18:24, 18:24] = True
    sim.paint("erase", mask, 1)
    assert not sim.state["cells"][:, mask].any()
    assert sim.state["cells"][:, ~mask].any()
    seed = torch.zeros(40, 40, dtype=torch.bool)
    seed[5, 5] = True
    sim.paint("seed", seed, 1)
    assert sim.state["cells"][:, 5, 5].tolist() == [0.0] * 3 + [1.0] * 13


def test_a_large_grid_has_many_flowers():
    start = GrowingCA().initial((80, 120), torch.Generator().manual_seed(0))["cells"]
    assert (start[3] > 0).sum() == 6


def test_nothing_grows_far_from_a_seed():
    sim = Simulation(GrowingCA(), size=(40, 40), compiled=False, device="cpu")
    sim.run(5)
    cells = sim.state["cells"].abs().sum(0)
    assert not cells[:13].any()
    assert cells[15:26, 15:26].any()


def test_another_network_can_be_run(tmp_path):
    network = CellNetwork.random(16, 8, ("identity", "laplacian"))
    network.save(tmp_path / "own.safetensors")
    model = GrowingCA(str(tmp_path / "own.safetensors"))
    assert model.network.filters == ("identity", "laplacian")
    with pytest.raises(ArgumentError, match="is no file of a cell network"):
        GrowingCA("nowhere.safetensors")
