"""Kernels of earlier processes: found by the step's operations, and verified before use."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

from hotgrid.config import override
from hotgrid.grid import Field, Model, Parameter, Simulation
from hotgrid.grid.forms.kernel._kept_kernels import PieceTrial
from hotgrid.grid.forms.padded._padded import PaddedForm


class Mixing(Model):
    """Heat with a constant of the code, a parameter, and a number that follows from it."""

    fields = (Field("u"),)
    rate = Parameter(0.2, low=0, high=0.25)

    def __init__(self, bend: float = 0.5, **parameters: float) -> None:
        super().__init__(**parameters)
        self.bend = bend

    def step(self, state, inputs, params):
        u = state["u"]
        around = u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1]
        return {"u": u[0, 0] + params["rate"] / (1 + self.bend) * (around - 4 * u[0, 0])}


class Bent(Model):
    """A step whose kernel need not have the bits of the uncompiled one."""

    fields = (Field("u"),)

    def step(self, state, inputs, params):
        u = state["u"]
        return {"u": torch.exp(-u[0, 1]) * torch.sin(u[0, 0])}


class Sorted(Model):
    """A step that is not a single kernel."""

    fields = (Field("u"),)

    def step(self, state, inputs, params):
        u = state["u"]
        return {"u": torch.stack([u[0, 1], u[1, 0], u[0, 0]]).sort(0).values[1]}


MUCH = torch.arange(1000.0)


def simulation(model: Model, **options) -> Simulation:
    start = {"u": torch.rand(20, 30, generator=torch.Generator().manual_seed(3))}
    return Simulation(model, size=(20, 30), state=start, device="cpu", **options)


def trial(make: Callable[[Tensor, Tensor], object]) -> PieceTrial:
    """Of a function from the last four of eight cells to as many others."""
    rooms = [torch.arange(8.0), torch.arange(8.0) + 9]
    outs = [[room[4:]] for room in reversed(rooms)]
    return PieceTrial(lambda old: make(rooms[old][4:], outs[old][0]), outs, rooms, 4)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    return tmp_path / "kernels"


@pytest.fixture
def compilations(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What is compiled from now on."""
    compiled: list[object] = []
    compile_ = torch.compile

    def counted(function, **options):
        compiled.append(function)
        return compile_(function, **options)

    monkeypatch.setattr(torch, "compile", counted)
    return compiled


def replaced(path: Path, content: bytes) -> None:
    """Put another file there: the old one may be part of this process."""
    path.unlink()
    path.write_bytes(content)


@pytest.mark.usefixtures("folder")
def test_the_same_steps_have_one_name_and_others_another():
    def named(number: float, constant: float) -> str:
        table = torch.tensor([constant, 2.0, 3.0, 4.0])
        return str(trial(lambda x, out: out.copy_(x * number + table))._file)

    assert named(0.5, 1.0) == named(0.5, 1.0)
    assert len({named(0.5, 1.0), named(0.25, 1.0), named(0.5, 7.0)}) == 3


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    "make",
    [lambda x, out: out.copy_(x * x.sum().item()), lambda x, out: out.copy_(x * MUCH[:4])],
    ids=["a number read", "much data"],
)
def test_a_step_that_notes_do_not_tell_all_of_has_no_name(make):
    found = trial(make)
    assert found._file is None
    assert found.known() is None


@pytest.mark.usefixtures("folder")
def test_a_trial_leaves_everything_as_it_was():
    rooms = [torch.arange(8.0), torch.arange(8.0) + 9]
    before = [room.clone() for room in rooms]
    outs = [[room[4:]] for room in reversed(rooms)]
    PieceTrial(lambda old: outs[old][0].add_(rooms[old][:4]), outs, rooms, 4)
    assert all(map(torch.equal, rooms, before))


def test_without_a_cache_nothing_has_a_name(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR", raising=False)
    with override({"compile.cache": "none"}):
        assert trial(lambda x, out: out.copy_(x + 1))._file is None
    assert "TORCHINDUCTOR_CACHE_DIR" not in os.environ


@pytest.mark.usefixtures("folder")
def test_a_step_that_was_given_up_is_remembered():
    def plain(x: Tensor, out: Tensor) -> Tensor:
        return out.copy_(x.sort().values)

    assert not trial(plain).in_vain
    trial(plain).give_up()
    assert trial(plain).in_vain
    assert trial(plain).known() is None
    assert not trial(lambda x, out: out.copy_(x)).in_vain


@pytest.mark.compiles
@pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")
@pytest.mark.usefixtures("folder")
@pytest.mark.long
def test_a_step_without_a_kernel_for_the_core_is_compiled_once_the_next_time(compilations):
    for often in (2, 1):
        sims = [simulation(Sorted(), compiled=c) for c in (True, False)]
        for sim in sims:
            sim.run(3, progress=False)
        assert len(compilations) == often
        assert not sims[0]._form.swept  # pyright: ignore[reportAttributeAccessIssue]
        assert torch.equal(sims[0].state["u"], sims[1].state["u"])
        compilations.clear()


@pytest.mark.compiles
@pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")
def test_a_kernel_that_rounds_otherwise_is_kept_for_its_own_bits(folder: Path, compilations):
    simulation(Bent()).run(3, progress=False)
    assert len(compilations) == 1
    [file] = folder.glob("*.json")
    entry = json.loads(file.read_text())
    # As if a piece had come out one bit off when it was compiled.
    told = [{**entry, "exact": False, "made": made} for made in (entry["made"], "0" * 64)]
    for text, compiles in zip(told, (0, 1), strict=True):
        file.write_text(json.dumps(text))
        compilations.clear()
        sims = [simulation(Bent(), compiled=c) for c in (True, False)]
        for sim in sims:
            sim.run(9, progress=False)
        assert len(compilations) == compiles
        assert torch.allclose(sims[0].state["u"], sims[1].state["u"])
    # Other numbers have other bits, and say nothing about those of the first time.
    file.write_text(json.dumps(told[1]))
    compilations.clear()
    other = simulation(Bent())
    other.state = {"u": other.state["u"] + 1}
    other.run(3, progress=False)
    assert not compilations


@pytest.mark.compiles
@pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")
def test_a_second_start_does_not_compile(folder: Path, compilations: list[object]):
    simulation(Mixing()).run(3, progress=False)
    [library] = folder.glob("*.so")
    compiled = compilations
    compiled.clear()
    # Another value of a parameter is not another step, and another constant is.
    for model, compiles in [(Mixing(rate=0.1), 0), (Mixing(bend=0.25), 1), (Mixing(), 0)]:
        sims = [simulation(model), simulation(model, compiled=False)]
        for sim in sims:
            sim.run(9, progress=False)
        assert isinstance(sims[0]._form, PaddedForm)
        assert sims[0]._form._sweep is not None
        assert torch.equal(sims[0].state["u"], sims[1].state["u"])
        assert len(compiled) == compiles
        compiled.clear()
    # A library that was damaged is not opened, but made anew.
    replaced(library, library.read_bytes()[:-1])
    simulation(Mixing()).run(1, progress=False)
    assert len(compiled) == 1
    simulation(Mixing()).run(1, progress=False)
    assert len(compiled) == 1


@pytest.mark.compiles
@pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")
def test_a_kernel_that_does_something_else_is_not_trusted(folder: Path):
    for bend in (0.5, 0.25):
        simulation(Mixing(bend)).run(1, progress=False)
    one, other = sorted(folder.glob("*.json"))
    for suffix in (".json", ".so"):
        replaced(one.with_suffix(suffix), other.with_suffix(suffix).read_bytes())
    sims = [simulation(Mixing(b), compiled=c) for b in (0.5, 0.25) for c in (True, False)]
    for sim in sims:
        sim.run(5, progress=False)
    assert torch.equal(sims[0].state["u"], sims[1].state["u"])
    assert torch.equal(sims[2].state["u"], sims[3].state["u"])
