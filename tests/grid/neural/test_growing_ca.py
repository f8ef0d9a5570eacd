"""The growing automaton: from a seed to its picture, and back to it after damage."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from hotgrid.cluster import run_ranks
from hotgrid.errors import ArgumentError
from hotgrid.grid import Simulation
from hotgrid.grid.model import coded_colours
from hotgrid.grid.neural import CellNetwork, GrowingCA

SIZE = tuple(n + more for n, more in zip(GrowingCA().target.shape[1:], (8, 12), strict=True))


def simulation(model: GrowingCA | None = None, size=SIZE, **options) -> Simulation:
    return Simulation(model or GrowingCA(), size=size, compiled=False, device="cpu", **options)


def half() -> torch.Tensor:
    """The right half of the grid."""
    return (torch.arange(SIZE[1]) >= SIZE[1] // 2).expand(SIZE).clone()


@pytest.mark.parametrize("seed", [0, 1])
def test_a_seed_grows_into_the_picture_which_grows_again_when_half_is_erased(seed):
    sim = simulation(seed=seed)
    begun = sim.observe()["error"]
    sim.run(100)
    grown = sim.observe()["error"]
    assert grown < begun / 10
    sim.paint("alive", half(), 0.0)
    erased = sim.observe()["error"]
    assert erased > begun / 4
    sim.run(80)
    assert sim.observe()["error"] < 0.6 * erased


def test_the_error_is_that_of_the_target_in_the_middle():
    sim = simulation()
    model, cells = sim.model, torch.zeros_like(sim.state["cells"])
    rows, columns = model.target.shape[1:]
    y, x = SIZE[0] // 2 - rows // 2, SIZE[1] // 2 - columns // 2
    cells[:4, y : y + rows, x : x + columns] = model.target
    sim.state = {**sim.state, "cells": cells}
    assert sim.observe()["error"] == 0
    cells[3, 0, 0] = 2.0
    sim.state = {**sim.state, "cells": cells}
    assert sim.observe()["error"] == pytest.approx(4 / model.target.numel())


def test_the_picture_is_colours_over_white():
    sim = simulation()
    sim.run(60)
    cells = sim.state["cells"]
    expected = (1 - cells[3].clamp(0, 1) + cells[:3]).clamp(0, 1)
    found = coded_colours()[sim.view("colour").long()].movedim(-1, 0)
    # Half of a shade, of which there are at least six.
    assert (found - expected).abs().max() < 0.101
    assert (found[:, 0, 0] == 1).all()


def test_the_seed_of_a_run_decides_which_cells_change():
    first, again, other = (simulation(seed=s) for s in (1, 1, 2))
    for sim in (first, again, other):
        sim.run(20)
    assert torch.equal(first.state["cells"], again.state["cells"])
    assert not torch.equal(first.state["cells"], other.state["cells"])


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_the_brush_erases_or_puts_seeds_on_a_mesh_too(value):
    mask = torch.zeros(SIZE, dtype=torch.bool)
    mask[SIZE[0] // 2 - 2 : SIZE[0] // 2 + 2, 6:-6] = True

    def painted(communicator=None):
        cut = {} if communicator is None else {"mesh": "2x1", "communicator": communicator}
        sim = simulation(**cut)
        sim.run(30)
        sim.paint("alive", mask, value)
        cells = sim.state["cells"]
        sim.run(5)
        return cells, sim.state["cells"]

    whole = painted()
    assert (whole[0][3:, mask] == value).all()
    assert (whole[0][:3, mask] == 0).all()
    for found in run_ranks(2, painted):
        assert all(torch.equal(a, b) for a, b in zip(found, whole, strict=True))


def test_a_network_of_ones_own_is_read_from_a_file(tmp_path: Path):
    target = torch.zeros(4, 6, 8, dtype=torch.uint8)
    path = tmp_path / "mine.safetensors"
    CellNetwork.random(7, 5).save(path, target=target)
    model = GrowingCA(str(path))
    assert model.network.channels == 7
    assert model.target.shape == (4, 6, 8)
    assert model.choices() != GrowingCA().choices()


def other_file(path: Path) -> None:
    save_file({"weight": torch.zeros(3)}, path)


def without_target(path: Path) -> None:
    CellNetwork.random(8, 4).save(path)


def wrong_target(path: Path) -> None:
    CellNetwork.random(8, 4).save(path, target=torch.zeros(3, 5, 5, dtype=torch.uint8))


def few_channels(path: Path) -> None:
    CellNetwork.random(4, 4).save(path, target=torch.zeros(4, 5, 5, dtype=torch.uint8))


def wrong_shapes(path: Path) -> None:
    sizes = {"hidden": (4, 5), "hidden_bias": (4,), "output": (8, 4), "output_bias": (8,)}
    save_file({name: torch.zeros(size) for name, size in sizes.items()}, path)


@pytest.mark.parametrize(
    ("write", "said"),
    [
        (lambda path: None, "is not a cell network file: .*No such file"),
        (lambda path: path.write_text("flower"), "is not a cell network file"),
        (other_file, "is not a cell network file: it has no tensor 'hidden'"),
        (wrong_shapes, "is not a cell network file: `filters` needs one of"),
        (without_target, "lacks a `target` of bytes"),
        (wrong_target, "lacks a `target` of bytes"),
        (few_channels, "a network of 4 channels"),
    ],
)
def test_a_file_that_does_not_fit_is_refused(tmp_path: Path, write, said):
    path = tmp_path / "mine.safetensors"
    write(path)
    with pytest.raises(ArgumentError, match=said) as refused:
        GrowingCA(str(path))
    assert str(path) in str(refused.value)


def test_a_grid_must_hold_the_picture():
    with pytest.raises(ArgumentError, match="does not fit into"):
        simulation(size=(8, 40))
