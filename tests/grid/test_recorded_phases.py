"""Steps with a phase as CUDA graphs, on a CPU: operations are noted and made again."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from hotgrid.grid import Field, Model, Parameter, PhaseModel, Simulation, pde
from hotgrid.grid.forms._form import CELLS_OF_A_BUSY_GPU, Setting
from hotgrid.grid.forms._roll import GraphForm, RollForm

SIZE = (12, 10)


class Watched(TorchDispatchMode):
    """Tells of operations that wait for a GPU; a recording is told of all."""

    def __init__(self, note: Callable[..., None], waited: Callable[[], None]) -> None:
        super().__init__()
        self.note, self.waited = note, waited
        self.written: list[tuple[Tensor, Tensor]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None):
        if func is torch.ops.aten._local_scalar_dense.default:
            self.waited()
        if func._schema.is_mutable:
            self.written.append((args[0], args[0].clone()))
        result = func(*args, **(kwargs or {}))
        self.note(func, args, kwargs or {}, result)
        return result


class Graph:
    """What a capture noted; a replay reads and writes the memory of the capture."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.replays = 0

    def replay(self) -> None:
        self.replays += 1
        for func, args, kwargs, result in self.calls:
            new = func(*args, **kwargs)
            given = {_memory(x) for x in tree_leaves((args, kwargs)) if isinstance(x, Tensor)}
            for old, x in zip(tree_leaves(result), tree_leaves(new), strict=True):
                # A view is of what was written already.
                if isinstance(old, Tensor) and _memory(old) not in given:
                    old.copy_(x)


def _memory(x: Tensor) -> int:
    return x.untyped_storage().data_ptr()


class Gpu:
    """What the form asks of `torch.cuda`; `graphs` are the recordings."""

    def __init__(self) -> None:
        self.graphs: list[Graph] = []
        self.streams: list[str] = []
        self._watching: Watched | None = None

    def CUDAGraph(self) -> Graph:
        self.graphs.append(Graph())
        return self.graphs[-1]

    def synchronize(self) -> None: ...

    def current_stream(self) -> str:
        return "main"

    def set_stream(self, stream: str) -> None:
        self.streams.append(stream)

    def get_sync_debug_mode(self) -> int:
        return 0

    def set_sync_debug_mode(self, mode: Any) -> None:
        if mode == "warn":
            said = "called a synchronizing CUDA operation"
            self._watching = Watched(lambda *_: None, lambda: warnings.warn(said, stacklevel=1))
            self._watching.__enter__()
        elif self._watching is not None:
            self._watching.__exit__(None, None, None)

    @contextmanager
    def graph(self, graph: Graph, capture_error_mode: str) -> Iterator[None]:
        assert capture_error_mode == "thread_local"

        def refuse() -> None:
            raise RuntimeError("operation not permitted when stream is capturing")

        with Watched(lambda *call: graph.calls.append(call), refuse) as watched:
            yield
        # A capture runs nothing.
        for x, old in reversed(watched.written):
            x.copy_(old)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Gpu:
    fake = Gpu()
    for name in [name for name in dir(Gpu) if not name.startswith("_")]:
        monkeypatch.setattr(torch.cuda, name, getattr(fake, name))
    return fake


def forms(model: Model, size: tuple[int, ...] = SIZE) -> tuple[GraphForm, RollForm]:
    """The form that records, and a plain one with parameters of its own."""
    made = []
    for kind in (GraphForm, RollForm):
        sim = Simulation(model, size=size, device="cpu", compiled=False, seed=3)
        form = kind(sim._setting)
        form.load(sim._form.own())
        made.append(form)
    return made[0], made[1]


def expect_same(*made: RollForm) -> None:
    one, other = (form.read() for form in made)
    for name, x in one.items():
        assert torch.equal(x, other[name]), name


class Swapped(PhaseModel):
    """Returns one field as another, and keeps a third as it is."""

    fields = (Field("a"), Field("b"), Field("c"))
    rate = Parameter(0.5)
    waits = False

    def phase(self, whole, state, inputs, params):
        rate = whole.table(self.tabled, params["rate"])
        if self.waits and state["a"].sum().item() > 1e9:
            raise AssertionError
        return {"a": rate * state["a"] + whole.mean(state["b"]), "b": state["a"]}

    def tabled(self, whole, rate: Tensor) -> Tensor:
        # A table may wait: it is made before a recording.
        return torch.tensor(rate.item(), dtype=rate.dtype)

    def initial(self, size, generator):
        return {name: torch.rand(size, generator=generator) for name in "abc"}


@pytest.mark.parametrize(
    "model",
    [pde.KuramotoSivashinsky(), pde.Vorticity(), pde.NavierStokes(), Swapped()],
    ids=lambda model: type(model).__name__,
)
def test_replays_are_plain_steps_to_the_bit(gpu: Gpu, model: Model):
    recorded, plain = forms(model)
    for steps in (1, 1, 4, 1, 7):
        recorded.run(steps)
        plain.run(steps)
        expect_same(recorded, plain)
    assert [graph.replays for graph in gpu.graphs] == [11]


def test_a_state_that_is_loaded_goes_into_the_recorded_buffers(gpu: Gpu):
    recorded, plain = forms(pde.Vorticity())
    recorded.run(5)
    start = {name: x + 0.5 for name, x in plain.read().items()}
    for form in (recorded, plain):
        form.load(start)
        form.run(3)
    expect_same(recorded, plain)
    assert [graph.replays for graph in gpu.graphs] == [5]


@pytest.mark.parametrize(
    ("model", "changes"),
    [(pde.Vorticity(), {"viscosity": 0.05}), (pde.NavierStokes(), {"dt": 0.1})],
    ids=["Vorticity", "NavierStokes"],
)
def test_a_change_of_parameters_is_recorded_anew(gpu: Gpu, model: Model, changes: dict):
    recorded, plain = forms(model)
    recorded.run(6)
    plain.run(6)
    for form in (recorded, plain):
        assert form.live_params
        for name, value in changes.items():
            form.setting.params[name].fill_(value)
        form.run(6)
    expect_same(recorded, plain)
    assert [graph.replays for graph in gpu.graphs] == [3, 3]


def test_parameters_that_change_at_every_step_are_not_recorded(gpu: Gpu):
    recorded, plain = forms(pde.Vorticity())
    for step in range(8):
        for form in (recorded, plain):
            form.setting.params["viscosity"].fill_(0.01 + 0.001 * step)
            form.run(1)
    expect_same(recorded, plain)
    assert gpu.graphs == []


def test_a_phase_that_waits_for_the_gpu_is_never_captured(gpu: Gpu):
    model = Swapped()
    model.waits = True
    recorded, plain = forms(model)
    for steps in (5, 3):
        recorded.run(steps)
        plain.run(steps)
    expect_same(recorded, plain)
    assert gpu.graphs == []


def test_after_a_capture_that_fails_steps_are_plain(gpu: Gpu, monkeypatch: pytest.MonkeyPatch):
    model = Swapped()
    model.waits = True
    recorded, plain = forms(model)
    # Not every operation that waits is told of before.
    monkeypatch.setattr(GraphForm, "_waits", lambda form: False)
    for steps in (5, 3):
        recorded.run(steps)
        plain.run(steps)
    expect_same(recorded, plain)
    assert [graph.replays for graph in gpu.graphs] == [0]
    assert gpu.streams == ["main"]


def test_it_is_for_more_cells_with_a_phase_than_without():
    def setting(model: Model) -> Setting:
        sim = Simulation(model, size=(1024, 1024), device="cpu", batch=2)
        return sim._setting

    assert setting(pde.Heat()).cells == CELLS_OF_A_BUSY_GPU
    assert "takes longer than its launch" in GraphForm.drawback(setting(pde.Heat()))
    assert GraphForm.drawback(setting(pde.Vorticity())) == ""
