"""Walls that are painted: in checkpoints, and gone where the run starts again."""

import re
from pathlib import Path
from typing import Any

import pytest
import torch

from hotgrid.cluster import Communicator, Mesh, run_ranks
from hotgrid.errors import ArgumentError
from hotgrid.grid import Simulation, SimulationCheckpoints, lbm, pde

from .conftest import Desk

WALL = {"stroke": 1, "brush": "solid", "value": 1.0, "radius": 3, "points": [[24, 100]]}


def is_wall(here: Desk) -> bool:
    return bool(here.sim.model.solid((48, 144))[24, 100])  # pyright: ignore


def test_a_checkpoint_holds_painted_walls(desk):
    here = desk("karman", size="48x144")
    here.ask("stroke", **WALL)
    here.ask("step", count=2)
    here.stopped_at(2)
    here.ask("save", what="checkpoint", name="walled")
    here.ask("undo")
    assert not is_wall(here)
    here.ask("load", name="walled")
    assert is_wall(here) and here.session.live.painted
    here.ask("step", count=2)
    here.stopped_at(4)
    assert here.sim.view("speed")[24, 100] == 0
    # As after a restart.
    later = desk("karman", size="48x144")
    later.ask("load", name="walled")
    assert is_wall(later) and later.session.live.painted
    later.ask("step", count=2)
    later.stopped_at(4)
    assert torch.equal(later.sim.state["f"], here.sim.state["f"])
    # Others can be painted beside them.
    later.ask("stroke", **{**WALL, "points": [[24, 80]]})
    assert is_wall(later)
    later.ask("undo")
    assert is_wall(later)


def test_a_state_without_walls_removes_those_that_were_painted(tmp_path: Path):
    sim = Simulation(lbm.Karman(), size=(48, 144), device="cpu", compiled=False)
    file = sim.save(tmp_path / "clean")
    mask = torch.zeros(48, 144, dtype=torch.bool)
    mask[24, 100] = True
    sim.paint("solid", mask, 1)
    walled = sim.save(tmp_path / "walled")
    sim.load(file)
    assert sim._solid is None and not sim.model.solid((48, 144))[24, 100]  # pyright: ignore
    sim.load(walled)
    assert sim.model.solid((48, 144))[24, 100]  # pyright: ignore


@pytest.mark.parametrize("order", [("reset", {"seed": 5}), ("goto", {"step": 0})])
def test_a_run_that_starts_again_is_without_painted_walls(desk, order):
    kind, fields = order
    here = desk("karman", size="48x144")
    here.ask("step", count=2)
    here.stopped_at(2)
    here.ask("stroke", **WALL)
    assert is_wall(here)
    here.ask(kind, **fields)
    here.stopped_at(0)
    assert not is_wall(here) and not here.session.live.painted
    assert len(here.sim.model.boundaries) == len(here.sim._start.boundaries)


def test_walls_of_a_checkpoint_are_those_of_every_rank(tmp_path: Path):
    def body(ranks: Communicator) -> tuple[bool, int]:
        cut: dict[str, Any] = {
            "mesh": "1x2",
            "communicator": ranks,
            "device": "cpu",
            "compiled": False,
        }
        sim = Simulation(lbm.Karman(), (48, 144), **cut)
        mask = torch.zeros(48, 144, dtype=torch.bool)
        mask[20:28, 100] = True
        sim.paint("solid", mask, 1)
        sim.save(tmp_path / "walled")
        later = Simulation(lbm.Karman(), (48, 144), **cut)
        later.load(tmp_path / "walled")
        for each in (sim, later):
            each.run(4, progress=False)
        same = all(
            torch.equal(x, later._form.own()[name]) for name, x in sim._form.own().items()
        )
        return same, 0 if later._solid is None else int(later._solid.sum())

    assert run_ranks(2, body, timeout=60) == [(True, 8)] * 2


@pytest.mark.parametrize("mesh", ["1x1", "2x1"])
def test_walls_of_a_folder_of_checkpoints_fit_every_mesh(tmp_path: Path, mesh: str):
    plain: dict[str, Any] = {"device": "cpu", "compiled": False}
    mask = torch.zeros(48, 144, dtype=torch.bool)
    mask[20:28, 100] = True
    alone = Simulation(lbm.Karman(), (48, 144), **plain)
    alone.paint("solid", mask, 1)

    def body(ranks: Communicator) -> bool:
        cut: dict[str, Any] = {"mesh": mesh, "communicator": ranks, **plain}
        sim = Simulation(lbm.Karman(), (48, 144), **cut)
        clean = SimulationCheckpoints(sim, tmp_path / "clean")
        clean.save()
        sim.paint("solid", mask, 1)
        sim.run(2, progress=False)
        with SimulationCheckpoints(sim, tmp_path / "walled") as checkpoints:
            checkpoints.save(asynchronous=True)
        clean.load()
        assert sim._solid is None
        checkpoints.load()
        sim.run(2, progress=False)
        sim.save(tmp_path / "end")
        return sim._solid is not None and torch.equal(sim._solid, mask)

    assert all(run_ranks(Mesh(mesh).ranks, body, timeout=60))
    alone.run(4, progress=False)
    found = Simulation(lbm.Karman(), (48, 144), **plain)
    SimulationCheckpoints(found, tmp_path / "walled").load()
    found.run(2, progress=False)
    again = Simulation(lbm.Karman(), (48, 144), **plain)
    again.load(tmp_path / "end")
    for sim in (found, again):
        assert sim.model.solid((48, 144))[24, 100]  # pyright: ignore
        assert torch.equal(sim.state["f"], alone.state["f"])


@pytest.mark.parametrize("value", [1e39, float("nan"), float("inf"), "1", None])
def test_only_finite_numbers_are_painted(value: Any):
    sim = Simulation(pde.Heat(), size=(8, 8), device="cpu", compiled=False)
    with pytest.raises(
        ArgumentError, match=re.escape(f"cannot paint {value!r} with the brush `u`")
    ):
        sim.paint("u", torch.ones(8, 8, dtype=torch.bool), value)
