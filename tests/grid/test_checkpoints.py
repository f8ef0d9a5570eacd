"""Checkpoints of a simulation: saved on one mesh, loaded on any, and stopped runs."""

import math
import threading
from pathlib import Path
from typing import Any

import pytest
import torch

from hotgrid.cluster import Communicator, run_ranks
from hotgrid.errors import ArgumentError, StoreError
from hotgrid.grid import Model, Simulation, SimulationCheckpoints, lbm, life, pde
from hotgrid.store import _save

MODELS = {
    "cavity": (lbm.Cavity, (12, 12)),
    "karman": (lbm.Karman, (48, 64)),
    "life": (life.Life, (16, 64)),
}


def simulation(model: Model, size: tuple[int, ...], **options: Any) -> Simulation:
    return Simulation(model, size, compiled=False, device="cpu", **options)


def on_mesh(mesh: str, work: Any, model: Any = pde.Heat, size: Any = (12, 10)) -> list[Any]:
    def part(ranks: Communicator) -> Any:
        return work(simulation(model(), size, mesh=mesh, communicator=ranks))

    return run_ranks(ranks_of(mesh), part)


def ranks_of(mesh: str) -> int:
    return math.prod(map(int, mesh.split("x")))


@pytest.mark.parametrize(("form", "copied"), [("roll", False), ("padded", True)])
def test_steps_go_on_while_a_state_is_written(form, copied, tmp_path, monkeypatch):
    write, done, sources = _save.write_shard_file, threading.Event(), []

    def held_back(path: Path, tensors: Any) -> Any:
        assert done.wait(60)
        sources.extend(tensor.data_ptr() for tensor in tensors.values())
        return write(path, tensors)

    monkeypatch.setattr(_save, "write_shard_file", held_back)
    sim, twin = (simulation(pde.Heat(), (12, 10), form=form) for _ in range(2))
    sim.run(3, progress=False)
    twin.run(3, progress=False)
    lent = [x.data_ptr() for x in sim._form.own().values()]
    with SimulationCheckpoints(sim, tmp_path) as checkpoints:
        checkpoints.save(asynchronous=True)
        sim.run(4, progress=False)
        done.set()
    assert (sources != lent) == copied
    SimulationCheckpoints(sim, tmp_path).load(3)
    assert torch.equal(sim.state["u"], twin.state["u"])


@pytest.mark.parametrize("name", MODELS)
def test_every_mesh_goes_on_from_every_other(name: str, tmp_path: Path):
    kind, size = MODELS[name]

    def saved(sim: Simulation) -> None:
        with SimulationCheckpoints(sim, tmp_path, notes={"by": name}) as checkpoints:
            sim.every(5, checkpoints)
            sim.run(10, progress=False)

    def resumed(sim: Simulation) -> tuple[Any, ...]:
        notes = SimulationCheckpoints(sim, tmp_path).load()
        begin = sim.step_count
        sim.run(7, progress=False)
        return notes, begin, next(iter(sim.state.values()))

    on_mesh("2x2", saved, kind, size)
    names = sorted(path.name for path in (tmp_path / "step-000000010").iterdir())
    assert names == ["manifest.json", *(f"rank-0000{r}.safetensors" for r in range(4))]
    whole = simulation(kind(), size)
    whole.run(17, progress=False)
    expected = next(iter(whole.state.values()))
    found = [*on_mesh("3x1", resumed, kind, size), *on_mesh("1x2", resumed, kind, size)]
    for notes, begin, state in [*found, resumed(simulation(kind(), size))]:
        assert (notes, begin) == ({"by": name}, 10)
        assert torch.equal(state, expected)


def test_what_was_just_saved_is_not_saved_twice(tmp_path: Path):
    sim = simulation(pde.Heat(), (8, 8))
    checkpoints = SimulationCheckpoints(sim, tmp_path, keep_last=None)
    sim.run(3)
    checkpoints(sim)
    assert checkpoints.save() == tmp_path / "step-000000003"
    sim.state = {"u": sim.state["u"] + 1}
    with pytest.raises(ArgumentError, match=r"step 3 is saved in .* already"):
        checkpoints.save()
    other = simulation(pde.Heat(), (8, 8))
    again = SimulationCheckpoints(other, tmp_path)
    again.load()
    again.save()
    assert again.steps() == [3]


def test_a_batch_and_a_narrow_storage_come_back(tmp_path: Path):
    options = {"batch": 3, "storage": torch.float16}
    sim, other = (simulation(pde.Heat(), (8, 8), **options, seed=s) for s in (0, 1))
    sim.run(4)
    SimulationCheckpoints(sim, tmp_path).save()
    SimulationCheckpoints(other, tmp_path).load(4)
    assert torch.equal(sim.state["u"], other.state["u"])


@pytest.mark.parametrize(
    ("model", "size", "what"),
    [
        (pde.GrayScott(), (8, 8), "model"),
        (pde.Heat(), (8, 9), "size"),
        (pde.Heat(rate=0.1), (8, 8), "parameters"),
    ],
)
def test_the_checkpoint_of_another_simulation_is_refused(
    model: Model, size: tuple[int, ...], what: str, tmp_path: Path
):
    SimulationCheckpoints(simulation(pde.Heat(), (8, 8)), tmp_path).save()
    sim = simulation(model, size)
    sim.run(2)
    with pytest.raises(ArgumentError, match=f"another simulation: its {what}: .*, here"):
        SimulationCheckpoints(sim, tmp_path).load()
    assert sim.step_count == 2


def test_damage_goes_back_one_step_on_all_ranks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    sim = simulation(pde.Heat(), (12, 10))
    checkpoints = SimulationCheckpoints(sim, tmp_path)
    for _ in range(2):
        sim.run(5)
        checkpoints.save()
    shard = tmp_path / "step-000000010" / "rank-00000.safetensors"
    shard.write_bytes(shard.read_bytes()[:-1] + b"\xff")
    steps = on_mesh("2", lambda s: SimulationCheckpoints(s, tmp_path).load() or s.step_count)
    assert steps == [5, 5]
    assert "step 10 is skipped" in capsys.readouterr().err


def test_where_there_is_none_there_are_no_notes(tmp_path: Path):
    checkpoints = SimulationCheckpoints(simulation(pde.Heat(), (8, 8)), tmp_path)
    assert checkpoints.notes() is None
    with pytest.raises(StoreError, match="there is no checkpoint in"):
        checkpoints.load()
    checkpoints.save()
    assert checkpoints.notes() == {}


def test_one_rank_that_wants_to_stop_stops_all_after_the_same_step():
    def part(ranks: Communicator) -> tuple[int, int]:
        sim = simulation(pde.Heat(), (12, 10), mesh="3", communicator=ranks)
        asked = []

        def stop() -> bool:
            asked.append(sim.step_count)
            return ranks.rank == 1 and len(asked) == 5

        sim.run(100_000, stop=stop, progress=False)
        return sim.step_count, len(asked)

    found = run_ranks(3, part)
    assert found == [found[0]] * 3
    assert found[0][1] == 5


def test_looks_for_a_stop_become_rare_and_change_no_bits():
    asked: list[int] = []
    sim, whole = (simulation(pde.Heat(), (8, 8)) for _ in range(2))
    sim.run(3000, stop=lambda: bool(asked.append(sim.step_count)), progress=False)
    whole.run(3000, progress=False)
    assert len(asked) < 300
    assert torch.equal(sim.state["u"], whole.state["u"])
