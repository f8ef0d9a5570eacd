"""Saved states: written atomically, and loaded only into a matching simulation."""

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from hotgrid.errors import ArgumentError, StoreError
from hotgrid.grid import Model, Simulation
from hotgrid.grid.pde import GrayScott, Heat


def simulation(model: Model | None = None, **options: Any) -> Simulation:
    options = {"size": (8, 8), "compiled": False, "device": "cpu", **options}
    return Simulation(model or Heat(), **options)


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("name", ["run", "run.safetensors", "deep/folder/run.state"])
def test_a_state_comes_back_under_the_name_it_was_saved_under(tmp_path: Path, name: str):
    sim = simulation()
    sim.run(7)
    path = sim.save(tmp_path / name)
    assert path.is_file()
    assert path.suffix
    other = simulation(seed=9)
    other.load(tmp_path / name)
    assert other.step_count == 7
    assert torch.equal(other.state["u"], sim.state["u"])
    assert files(path.parent) == [path.name]


def test_a_form_can_go_on_from_the_file_of_another(tmp_path: Path):
    roll, padded = simulation(form="roll"), simulation(form="padded", seed=1)
    roll.run(6)
    padded.load(roll.save(tmp_path / "run"))
    roll.run(5)
    padded.run(5)
    assert torch.equal(roll.state["u"], padded.state["u"])


OTHERS = {
    "model": simulation(GrayScott()),
    "size": simulation(size=(8, 9)),
    "parameters": simulation(Heat(rate=0.1)),
    "batch": simulation(batch=2),
    "storage": simulation(storage=torch.float16),
}


@pytest.mark.parametrize("what", OTHERS)
def test_the_file_of_another_simulation_is_refused(tmp_path: Path, what: str):
    path = OTHERS[what].save(tmp_path / "other")
    sim = simulation()
    sim.run(3)
    before = sim.state["u"]
    with pytest.raises(ArgumentError, match=f"another simulation: its {what}: .*, here"):
        sim.load(path)
    assert sim.step_count == 3
    assert torch.equal(sim.state["u"], before)


def test_a_damaged_file_is_refused(tmp_path: Path):
    sim = simulation()
    path = sim.save(tmp_path / "run")
    whole = path.read_bytes()
    for damaged in (b"", b"hello", whole[: len(whole) // 2], whole[:-1], b"\xff" * 100):
        path.write_bytes(damaged)
        with pytest.raises(ArgumentError, match="is damaged or not a saved state"):
            sim.load(path)


def test_a_number_that_was_changed_is_found(tmp_path: Path):
    sim = simulation()
    path = sim.save(tmp_path / "run")
    whole = bytearray(path.read_bytes())
    whole[-5] ^= 0x10
    path.write_bytes(whole)
    with pytest.raises(ArgumentError, match="its numbers are not those that were saved"):
        sim.load(path)


def test_a_file_that_is_not_there_or_not_ours_is_refused(tmp_path: Path):
    sim = simulation()
    with pytest.raises(ArgumentError, match=r"there is no file `.*nothing\.safetensors`"):
        sim.load(tmp_path / "nothing")
    save_file({"u": torch.zeros(1, 8, 8)}, tmp_path / "weights.safetensors")
    with pytest.raises(ArgumentError, match="is not a state that hotgrid saved"):
        sim.load(tmp_path / "weights")


@pytest.mark.parametrize("problem", [OSError(28, "No space left"), KeyboardInterrupt()])
def test_a_save_that_fails_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, problem: BaseException
):
    sim = simulation()
    path = sim.save(tmp_path / "run")
    old = path.read_bytes()

    def half_written(state: Any, aside: Path, metadata: Any) -> None:
        Path(aside).write_bytes(b"half")
        raise problem

    monkeypatch.setattr("hotgrid.grid.run._snapshot.save_file", half_written)
    sim.run(1)
    with pytest.raises((StoreError, KeyboardInterrupt)) as caught:
        sim.save(path)
    if isinstance(problem, OSError):
        assert f"cannot write `{path}`: No space left" in str(caught.value)
    assert path.read_bytes() == old
    assert files(tmp_path) == ["run.safetensors"]


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ArgumentError, match=r"cannot write `.*file/run\.safetensors`"):
        simulation().save(tmp_path / "file" / "run")
