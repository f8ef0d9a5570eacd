"""A rank of a mesh holds its part: of the start, of inputs, of what is observed and drawn."""

import math
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.distributed as dist
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

from hotgrid.cluster import Block, Communicator, Mesh, run_ranks, take
from hotgrid.config import override
from hotgrid.errors import ArgumentError
from hotgrid.grid import (
    Field,
    Input,
    Model,
    Picture,
    Simulation,
    lbm,
    life,
    observable,
    pde,
    total,
)
from hotgrid.grid.forms import _memory
from hotgrid.grid.forms._memory import needed
from hotgrid.grid.forms.cut._cut import CutForm
from hotgrid.grid.forms.parts import _part_inputs
from hotgrid.grid.model import GridWindow, _window, drawn, in_window, once, places, window_shape
from hotgrid.grid.output._reduced_view import ReducedView

SIZE = (256, 320)
CELLS = math.prod(SIZE)


class Largest(TorchDispatchMode):
    """The most numbers that any result has."""

    def __init__(self) -> None:
        super().__init__()
        self.numbers = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        for x in result if isinstance(result, list | tuple) else [result]:
            if isinstance(x, Tensor) and not x.is_meta:
                self.numbers = max(self.numbers, x.numel())
        return result


@pytest.fixture
def unwatched_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep messages out of `Largest`: torch rarely crashes where threads watch them."""
    for name in ("send", "recv", "allreduce", "allgather", "broadcast", "barrier"):
        plain = getattr(dist.ProcessGroup, name)

        def call(*args: Any, plain: Callable[..., Any] = plain, **kwargs: Any) -> Any:
            with _disable_current_modes():
                return plain(*args, **kwargs)

        monkeypatch.setattr(dist.ProcessGroup, name, call)


def simulation(model: Model, **options: Any) -> Simulation:
    plain = {"size": SIZE, "compiled": False, "device": "cpu", "form": "roll"}
    return Simulation(model, **{**plain, **options})


def together(mesh: str, work: Callable[[Communicator], Any]) -> list[Any]:
    return run_ranks(Mesh(mesh).ranks, work)


@pytest.mark.parametrize(
    "make", [pde.Heat, pde.GrayScott, pde.Ising, pde.Schroedinger, life.Life, lbm.DoubleShear]
)
@pytest.mark.usefixtures("unwatched_messages")
def test_a_rank_makes_nothing_as_large_as_the_grid(
    make: Callable[[], Model], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(_window, "_AT_ONCE", 4096)

    def part(communicator: Communicator) -> int:
        with Largest() as largest:
            sim = simulation(make(), mesh="2x2", depth=1, communicator=communicator)
            sim.run(2, progress=False)
            sim.observe()
        return largest.numbers

    # A part is a quarter, and some stack two of its planes.
    most = max(field.components for field in make().fields)
    assert max(together("2x2", part)) < 0.6 * most * CELLS


def test_numbers_are_drawn_as_for_the_whole_grid_and_leave_the_generator_there(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(_window, "_AT_ONCE", 50)
    kinds: list[Callable[..., Tensor]] = [
        lambda shape, generator: torch.rand(shape, generator=generator),
        lambda shape, generator: torch.rand(shape, generator=generator, dtype=torch.float64),
        lambda shape, generator: torch.randint(0, 2, shape, generator=generator),
    ]
    for size in [(40,), (9, 20), (4, 5, 6)]:
        block = Block(tuple(n // 3 for n in size), tuple(n // 2 for n in size), size)
        around = Block(tuple(-1 for _ in size), tuple(n // 2 for n in size), size)
        for kind in kinds:
            for box in (block, around):
                whole, part = (torch.Generator().manual_seed(3) for _ in range(2))
                expected = kind(size, whole)
                found = drawn(GridWindow(box), lambda shape, k=kind, g=part: k(shape, g))
                assert torch.equal(found, take(expected, box))
                assert torch.equal(part.get_state(), whole.get_state())


class Sloped(Model):
    """Places, inputs with neighbours, and ends that are not joined."""

    fields = (Field("u", boundary=0.0),)
    inputs = (Input("w", components=2),)
    windowed = True

    def initial(self, size, generator):
        y, x = places(size, torch.float32)
        return {"u": torch.sin(0.3 * y)[:, None] + x / size[1]}

    def static(self, size):
        y, x = places(size, torch.float32)
        return {"w": torch.stack([y[:, None] * x, y[:, None] - x]) / 100}

    def step(self, state, inputs, params):
        u, w = state["u"], inputs["w"]
        return {"u": 0.4 * u[0, 1] + 0.1 * w.part(1)[1, 0] - 0.1 * w.part(0)[-1, -1]}

    @observable(over="sum")
    def total(self, state):
        return total(state["u"])

    @observable(over="mean")
    def mean(self, state):
        return total(state["u"]) / state["u"].numel()

    @observable(over="max")
    def largest(self, state):
        return self._rises(state).max()

    @observable
    def corner(self, state):
        return state["u"][0, 0]

    @once(reach=1)
    def _rises(self, state):
        """To the next column; nothing beyond the last."""
        return torch.nn.functional.pad(state["u"].diff(dim=1), (0, 1))


@pytest.mark.parametrize("overlap", [False, True])
@pytest.mark.parametrize("mesh", ["3x1", "1x2", "2x2"])
def test_inputs_of_windows_repeat_beyond_the_ends(mesh: str, overlap: bool):
    whole = simulation(Sloped(), size=(12, 16))
    whole.run(5, progress=False)

    def part(communicator: Communicator) -> tuple[Any, ...]:
        sim = simulation(
            Sloped(), size=(12, 16), mesh=mesh, depth=1, overlap=overlap,
            communicator=communicator,
        )  # fmt: skip
        sim.run(5, progress=False)
        return sim.state["u"], sim.identity(), sim.bytes_per_step()

    for u, identity, moved in together(mesh, part):
        assert torch.equal(u, whole.state["u"])
        assert identity == whole.identity()
        assert moved == whole.bytes_per_step()


@pytest.mark.parametrize("batch", [None, 3])
def test_observables_over_parts_are_those_of_the_whole(batch: int | None):
    state = torch.rand(*[batch] * (batch is not None), 12, 16)
    alone = simulation(Sloped(), size=(12, 16), batch=batch, state={"u": state}).observe()

    def part(communicator: Communicator) -> dict[str, Any]:
        sim = simulation(
            Sloped(), size=(12, 16), batch=batch, state={"u": state}, mesh="2x2",
            communicator=communicator,
        )  # fmt: skip
        return sim.observe()

    for found in together("2x2", part):
        assert list(found) == list(alone)
        for name, value in alone.items():
            assert found[name] == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize(
    ("make", "size", "views"),
    [
        (lbm.Cavity, (48, 64), ["vorticity", "speed"]),
        (pde.Heat, (8, 12, 10), ["u"]),
        (life.Life, (32, 64), ["alive"]),
        (pde.Heat, (64,), ["u"]),
    ],
)
def test_no_rank_gathers_a_state_to_observe_or_to_draw(
    make: Callable[[], Model], size: tuple[int, ...], views: list[str], monkeypatch: Any
):
    whole = simulation(make(), size=size)
    whole.run(6, progress=False)
    seen, expected = whole.observe(), [Picture(whole, name)._numbers() for name in views]
    levels = [ReducedView(whole, name).image(20, 30) for name in views]
    mesh = "2x2" if len(size) > 1 else "4"

    def gathered(form: CutForm) -> None:
        raise AssertionError("a whole state was gathered")

    monkeypatch.setattr(CutForm, "read", gathered)

    def part(communicator: Communicator) -> tuple[Any, ...]:
        sim = simulation(make(), size=size, mesh=mesh, communicator=communicator)
        sim.run(6, progress=False)
        images = [ReducedView(sim, name).image(20, 30) for name in views]
        return sim.observe(), [Picture(sim, name)._numbers() for name in views], images

    for found, numbers, images in together(mesh, part):
        assert found == pytest.approx(seen, rel=1e-12, abs=1e-9)
        for a, b in zip(numbers, expected, strict=True):
            assert a.dtype == b.dtype
            assert np.ma.allequal(a, b)
        for a, b in zip(images, levels, strict=True):
            # Means of parts round differently.
            assert a.shape == b.shape
            assert np.abs(a.astype(int) - b).max() <= 1


class Lopsided(pde.Heat):
    """Writes its start without a word about windows, and mixes parts with a whole grid."""

    def initial(self, size, generator):
        u = super().initial(size, generator)["u"]
        return {"u": u + torch.arange(size[1]) + torch.zeros(size)}


def test_a_model_that_knows_no_windows_is_made_whole_with_a_notice(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(_part_inputs, "_WORTH_A_NOTICE", 1)
    whole = simulation(Lopsided(), size=(12, 16))
    assert (pde.Heat.windowed, Lopsided.windowed) == (True, False)

    def part(communicator: Communicator) -> Tensor:
        return simulation(
            Lopsided(), size=(12, 16), mesh="2x2", communicator=communicator
        ).state["u"]

    for u in together("2x2", part):
        assert torch.equal(u, whole.state["u"])
    [notice] = capsys.readouterr().err.splitlines()
    assert "makes the initial state of Lopsided whole" in notice


def test_the_memory_that_is_checked_is_that_of_a_part():
    def bytes_of(model: Model, *mesh: int) -> int:
        return needed(model, (100, 100), torch.float32, 1, mesh, on_cpu=True).device

    part, whole = bytes_of(pde.Heat(), 2, 2), bytes_of(pde.Heat())
    assert part == whole / 4
    assert bytes_of(Lopsided()) == whole
    assert part < bytes_of(Lopsided(), 2, 2) < whole


def test_a_whole_tensor_is_cut_and_a_window_is_left_as_it_is():
    size = GridWindow(Block((2, 1), (3, 4), (8, 6)))
    whole = torch.arange(48).view(8, 6)
    part = in_window(whole, size)
    assert part.shape == window_shape(size)
    assert torch.equal(part, whole[2:5, 1:5])
    assert in_window(part, size) is part
    assert in_window(whole, (8, 6)) is whole


def test_a_grid_that_is_refused_by_one_rank_runs_on_four(monkeypatch: pytest.MonkeyPatch):
    """Every rank is said to have memory for half of the grid."""
    model, size = pde.GrayScott(), (64, 96)
    expected = simulation(model, size=size)
    expected.run(3, progress=False)
    whole = needed(model, size, torch.float32, 1, on_cpu=True).device
    monkeypatch.setattr(_memory, "free_memory", lambda device: whole)
    with override({"memory.limit": 0.5}):
        with pytest.raises(ArgumentError, match="a grid of 64x96 needs about"):
            simulation(model, size=size)

        def part(communicator: Communicator) -> dict[str, Tensor]:
            sim = simulation(model, size=size, mesh="2x2", communicator=communicator)
            sim.run(3, progress=False)
            return sim.state

        for state in together("2x2", part):
            assert all(torch.equal(state[name], x) for name, x in expected.state.items())


SCRIPT = r"""
import re, sys, torch, hotgrid as hg
from pathlib import Path

torch.set_num_threads(1)
mesh, folder = sys.argv[1], Path(sys.argv[2])
options = {"compiled": False, "device": "cpu", "form": "roll"}
if mesh != "1":
    options["mesh"] = mesh

def peak():
    # Not `ru_maxrss`, which begins with that of the process that started this one.
    return int(re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[1])

def run(size):
    sim = hg.Simulation(hg.pde.GrayScott(), size=size, seed=3, **options)
    for _ in range(3):
        sim.step()
    return sim, sim.observe(), peak()

_, _, before = run((64, 64))
sim, seen, after = run((3072, 3072))
rank = 0 if mesh == "1" else sim._form.communicator.rank
own = {name: x.contiguous() for name, x in sim._form.own().items()}
torch.save((after - before, sim._form.offset, own, seen), folder / f"{rank}.pt")
"""


@pytest.mark.long
def test_four_ranks_take_a_part_of_the_memory_and_have_the_same_bits(tmp_path: Path):
    """One process grows by some 500 MB at most, each of four by some 130 MB."""
    script = tmp_path / "run.py"
    script.write_text(SCRIPT)
    # By default malloc keeps large freed blocks for reuse, and how many depends on timing.
    returned = {"MALLOC_MMAP_THRESHOLD_": "1000000", "MALLOC_TRIM_THRESHOLD_": "1000000"}

    def ran(mesh: str, *command: str) -> list[Any]:
        done = subprocess.run(
            [sys.executable, *command, str(script), mesh, str(tmp_path)],
            env={**os.environ, **returned, "OMP_NUM_THREADS": "1"}, capture_output=True,
            text=True, check=False, timeout=250,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return [torch.load(tmp_path / f"{rank}.pt") for rank in range(Mesh(mesh).ranks)]

    launched = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node=4")
    [(most, _, whole, alone)] = ran("1")
    for grown, offset, own, seen in ran("2x2", *launched):
        assert grown < 0.5 * most
        assert seen == pytest.approx(alone, rel=1e-12)
        for name, x in own.items():
            block = Block(tuple(offset), tuple(x.shape[-2:]), (3072, 3072))
            assert torch.equal(x, take(whole[name], block))


@pytest.mark.parametrize("topology", ["klein", "klein_sideways"])
def test_cells_of_a_surface_that_a_torus_covers_are_looked_at_whole(topology: Any):
    def cells(**options: Any) -> Tensor:
        sim = simulation(life.Life(topology=topology), size=(24, 64), **options)
        return sim.look_here("alive")[0]

    whole = cells()
    found = together("2x1", lambda ranks: cells(mesh="2x1", communicator=ranks))
    assert torch.equal(torch.cat(found), whole)
