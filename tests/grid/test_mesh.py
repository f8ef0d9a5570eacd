"""A grid cut over ranks: what holds beside equal bits, with ranks in threads and processes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from hotgrid.cluster import Communicator, HaloExchange, Mesh, SingleRank, run_ranks, take
from hotgrid.errors import ArgumentError, UnstableError
from hotgrid.grid import Field, Input, Model, Simulation, lbm, pde, rollout


def test_a_mesh_of_one_is_the_whole_grid():
    whole = Simulation(pde.Heat(), size=(12, 16), compiled=False)
    alone = Simulation(pde.Heat(), size=(12, 16), compiled=False, mesh="1x1")
    for sim in (whole, alone):
        sim.run(9, progress=False)
    assert torch.equal(whole.state["u"], alone.state["u"])


@pytest.mark.parametrize(
    ("mesh", "depth", "overlap"),
    [
        ("2x1x2", 1, False),
        ("1x2x2", 2, True),
        ("2x2x2", 1, True),
        pytest.param("2x1x2", 1, True, marks=pytest.mark.long),
        pytest.param("1x2x2", 2, False, marks=pytest.mark.long),
        pytest.param("2x2x2", 1, False, marks=pytest.mark.long),
    ],
)
def test_a_box_is_cut_along_all_of_its_axes_into_uneven_parts(mesh, depth, overlap):
    def flow() -> lbm.Cavity:
        return lbm.Cavity(lattice="D3Q19", reynolds=10)

    whole = Simulation(flow(), size=(7, 6, 9), compiled=False)
    whole.run(11, progress=False)

    def part(communicator: Communicator) -> torch.Tensor:
        sim = Simulation(
            flow(), size=(7, 6, 9), compiled=False, mesh=mesh, depth=depth, overlap=overlap,
            communicator=communicator,
        )  # fmt: skip
        sim.run(11, progress=False)
        return sim.state["f"]

    for f in run_ranks(Mesh(mesh).ranks, part):
        assert torch.equal(f, whole.state["f"])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"mesh": "2x"}, "mesh `2x` must be whole numbers"),
        ({"mesh": "2x2"}, "mesh `2x2` needs 4 ranks, but 1 were started"),
        ({"mesh": "1x1x1"}, "mesh `1x1x1` has 3 axes, but the grid has 2"),
        ({"mesh": "1", "depth": 0}, "`depth` must be at least 1, got 0"),
    ],
)
def test_misfits_are_reported(options, said: str):
    with pytest.raises(ArgumentError, match=said):
        Simulation(
            pde.Heat(), size=(12, 16), compiled=False, communicator=SingleRank(), **options
        )


def test_margins_that_do_not_fit_are_reported_on_every_rank():
    def part(communicator: Communicator) -> str:
        with pytest.raises(
            ArgumentError, match=r"a margin of 5 \(`depth` 5\) does not fit"
        ) as caught:
            Simulation(
                pde.Heat(), size=(8, 8), compiled=False, mesh="2", depth=5,
                communicator=communicator,
            )  # fmt: skip
        return str(caught.value)

    assert len(set(run_ranks(2, part))) == 1


class Mixed(Model):
    fields = (Field("u"), Field("v", boundary=0.0))

    def step(self, state, inputs, params):
        return {"u": state["u"][0, 1], "v": state["v"][0, 1]}


def test_ends_that_are_joined_for_some_fields_only_cannot_be_cut():
    with pytest.raises(ArgumentError, match="cannot be split over a mesh"):
        Simulation(Mixed(), size=(8, 8), compiled=False, mesh="1", communicator=SingleRank())


def test_a_deeper_margin_sends_fewer_messages():
    def sent(depth: int) -> list[int]:
        def part(communicator: Communicator) -> int:
            sim = Simulation(
                pde.Heat(), size=(32, 32), compiled=False, mesh="2x2", depth=depth,
                communicator=communicator,
            )  # fmt: skip
            sim.run(16, progress=False)
            return sim._form.halo.traffic.messages

        return run_ranks(4, part)

    assert sent(1) == [64] * 4
    assert sent(8) == [8] * 4


def test_a_state_saved_by_many_is_taken_up_by_one(tmp_path: Path):
    def part(communicator: Communicator) -> Path:
        sim = Simulation(
            lbm.Cavity(), size=(24, 24), compiled=False, mesh="2x1", communicator=communicator
        )
        sim.run(10, progress=False)
        return sim.save(tmp_path / "state")

    paths = run_ranks(2, part)
    assert paths[0] == paths[1]
    one, whole = (Simulation(lbm.Cavity(), size=(24, 24), compiled=False) for _ in range(2))
    one.load(paths[0])
    one.run(10, progress=False)
    whole.run(20, progress=False)
    assert torch.equal(one.state["f"], whole.state["f"])


def test_divergence_on_one_rank_stops_all_and_names_the_cell():
    def part(communicator: Communicator) -> tuple[str, int]:
        start = torch.zeros(16, 16)
        start[12, 5] = 1e38
        sim = Simulation(
            pde.Wave(), size=(16, 16), state={"u": start}, compiled=False, mesh="2",
            communicator=communicator,
        )  # fmt: skip
        sim.state = {"v": start * 3}
        with pytest.raises(UnstableError) as caught:
            sim.run(2000, progress=False, check_every=10)
        return str(caught.value), sim.step_count

    (first, steps), (second, others) = run_ranks(2, part)
    assert steps == others
    assert "no longer finite" in first
    # Rank 0 has no such cell, and still names it.
    assert first == second
    assert "first at cell (1" in first


SCRIPT = """
import sys, torch, hotgrid as hg
sim = hg.Simulation(hg.lbm.Karman(), size=(48, 64), mesh="2x1", compiled=False, device="cpu")
sim.run(12, progress=False)
sim.save(sys.argv[1])
"""


@pytest.mark.long
def test_processes_that_torchrun_started_find_each_other(tmp_path: Path):
    script = tmp_path / "street.py"
    script.write_text(SCRIPT)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    done = subprocess.run(
        [*command, "--nproc-per-node=2", str(script), str(tmp_path / "cut")],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    whole, cut = (
        Simulation(lbm.Karman(), size=(48, 64), compiled=False, device="cpu") for _ in range(2)
    )
    whole.run(12, progress=False)
    cut.load(tmp_path / "cut")
    assert torch.equal(whole.state["f"], cut.state["f"])


class Carried(Model):
    """Beyond the ends of the field is a constant; the input repeats there."""

    fields = (Field("u", boundary=0),)
    inputs = (Input("w", components=2),)

    def initial(self, size, generator):
        return {"u": torch.rand(size, generator=generator)}

    def static(self, size):
        cells = torch.arange(float(2 * size[0] * size[1]))
        return {"w": cells.view(2, *size) / 100}

    def step(self, state, inputs, params):
        u, w = state["u"], inputs["w"]
        return {"u": 0.5 * u[0, 1] + w.part(1)[1, 0] - w.part(0)[-1, -1] + w.here.sum(0)}


@pytest.mark.parametrize(
    ("overlap", "depth"),
    # The last one has blocks that are smaller than three margins.
    [(False, 1), (True, 1), (True, 3)],
)
@pytest.mark.parametrize("mesh", ["2x1", "1x2", "2x2"])
@pytest.mark.parametrize("form", ["roll", "padded"])
def test_inputs_repeat_beyond_the_ends_of_a_bounded_grid_on_a_mesh(form, mesh, overlap, depth):
    whole = Simulation(Carried(), size=(8, 9), compiled=False, form=form)
    whole.run(5, progress=False)

    def part(communicator: Communicator) -> torch.Tensor:
        sim = Simulation(
            Carried(), size=(8, 9), compiled=False, form=form, mesh=mesh, depth=depth,
            overlap=overlap, communicator=communicator,
        )  # fmt: skip
        sim.run(5, progress=False)
        return sim.state["u"]

    for u in run_ranks(Mesh(mesh).ranks, part):
        assert torch.equal(u, whole.state["u"])


class Populations(Model):
    """Three components, of which a step reads the last by its index."""

    fields = (Field("f", components=3),)

    def initial(self, size, generator):
        return {"f": torch.rand(3, *size, generator=generator)}

    def step(self, state, inputs, params):
        f = state["f"]
        return {"f": [f[0, 1][2], f[1, 0][0] + f[-1, -1][2], f[0, 0].sum(0)]}


@pytest.mark.parametrize("overlap", [False, True])
def test_a_batch_on_a_mesh_reads_components_by_index(overlap: bool):
    state = {"f": torch.rand(2, 3, 8, 9, generator=torch.Generator().manual_seed(0))}
    options = {"size": (8, 9), "batch": 2, "state": state, "compiled": False}
    whole = Simulation(Populations(), **options)
    whole.run(5, progress=False)

    def part(communicator: Communicator) -> torch.Tensor:
        cut = {"mesh": "2x1", "depth": 1, "overlap": overlap, "communicator": communicator}
        sim = Simulation(Populations(), **options, **cut)
        sim.run(5, progress=False)
        return sim.state["f"]

    for f in run_ranks(2, part):
        assert torch.equal(f, whole.state["f"])


class Wide(Model):
    """A mirror shows three cells at the end of a block to a radius of two."""

    radius = 2
    fields = (Field("u", boundary=("mirror", "neumann")),)

    def step(self, state, inputs, params):
        return {"u": state["u"][2, 0] + state["u"][-2, 0]}


def test_blocks_too_narrow_for_their_mirror_are_not_stepped_ahead_of_their_margins():
    def part(communicator: Communicator) -> None:
        cut = {"mesh": "4x1", "depth": 1, "overlap": True, "communicator": communicator}
        Simulation(Wide(), size=(9, 8), compiled=False, **cut)

    with pytest.raises(ArgumentError, match=r"`overlap` True .* `u` .* axis 0, .* 2 cells.* 3"):
        run_ranks(4, part)


def test_a_rollout_on_a_mesh_does_the_same():
    model, size = Carried(), (8, 9)
    start = model.initial(size, torch.Generator().manual_seed(1))["u"]
    whole = rollout(model, {"u": start}, 4)["u"]

    def part(communicator: Communicator) -> torch.Tensor:
        halo = HaloExchange(communicator, Mesh("2x1"), size, (1, 0), periodic=False)
        mine = take(start, halo.block)
        return rollout(model, {"u": mine}, 4, halo=halo)["u"]

    assert torch.equal(torch.cat(run_ranks(2, part)), whole)
