"""Rollouts: the steps of a simulation, and gradients that finite differences confirm."""

import gc
import weakref
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from hotgrid.config import override
from hotgrid.errors import ArgumentError
from hotgrid.grid import Field, Input, Model, Parameter, Simulation, rollout
from hotgrid.grid.pde import GrayScott, Heat, Wave


class Swirl(Model):
    """Two components, an input and a count: everything a rollout has to carry."""

    fields = (Field("f", components=2), Field("count", dtype=torch.int32))
    inputs = (Input("weight"),)
    gain = Parameter(0.1, low=0, high=1)

    def step(self, state: Mapping[str, Any], inputs: Mapping[str, Any], params: Any):
        a, b, weight = state["f"].part(0), state["f"].part(1), inputs["weight"]
        turned = [
            a.here + params["gain"] * weight[0, 1] * torch.sin(b[1, 0]),
            b.here - params["gain"] * weight.here * a[0, -1] * a.here,
        ]
        return {"f": turned, "count": state["count"].here + 1}

    def static(self, size: tuple[int, ...]):
        return {"weight": torch.linspace(0.5, 1.5, size[0] * size[1]).reshape(size)}


SIZE = (6, 5)


def swirl_state() -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(1)
    return {
        "f": torch.randn(2, *SIZE, generator=generator, dtype=torch.float64),
        "count": torch.zeros(SIZE, dtype=torch.int32),
    }


def loss(state: Mapping[str, Tensor]) -> Tensor:
    """A number that every cell of every floating field has a different say in."""
    parts = [
        (x * torch.linspace(-1, 2, x.numel(), dtype=x.dtype).reshape(x.shape) + x**2).sum()
        for x in state.values()
        if x.is_floating_point()
    ]
    return torch.stack(parts).sum()


@pytest.mark.parametrize("remat", [None, 3])
@pytest.mark.parametrize(
    "model", [Heat(), Wave(), GrayScott(), Swirl()], ids=lambda m: type(m).__name__
)
def test_a_rollout_makes_the_steps_of_a_simulation(model: Model, remat: int | None):
    sim = Simulation(model, size=SIZE, compiled=False, device="cpu", seed=2)
    if isinstance(model, Swirl):
        sim.state = {"f": torch.rand(2, *SIZE)}
    later = rollout(model, sim.state, 7, remat=remat)
    sim.run(7)
    assert list(later) == [field.name for field in model.fields]
    for name, expected in sim.state.items():
        assert torch.equal(later[name], expected), name
        assert later[name].dtype == expected.dtype


def test_no_steps_give_the_state_back():
    state = swirl_state()
    for remat in (None, 2):
        assert all(
            torch.equal(x, state[k]) for k, x in rollout(Swirl(), state, 0, remat=remat).items()
        )


def test_it_neither_writes_into_its_state_nor_hides_it_from_gradients():
    state = {"u": torch.rand(8, 8, requires_grad=True)}
    before = state["u"].detach().clone()
    later = rollout(Heat(), state, 3)
    assert later["u"].requires_grad
    assert torch.equal(state["u"], before)


@pytest.mark.parametrize(
    "remat", [2, *(pytest.param(n, marks=pytest.mark.long) for n in (None, 9))]
)
def test_gradients_of_state_inputs_and_parameters_are_those_of_finite_differences(
    remat: int | None,
):
    state = swirl_state()
    weight = Swirl().static(SIZE)["weight"].double()
    gain = torch.tensor(0.3, dtype=torch.float64)

    def far(f: Tensor, weight: Tensor, gain: Tensor) -> Tensor:
        begin = {"f": f, "count": state["count"]}
        return loss(rollout(Swirl(), begin, 5, {"gain": gain}, {"weight": weight}, remat=remat))

    at = [x.clone().requires_grad_() for x in (state["f"], weight, gain)]
    assert torch.autograd.gradcheck(far, at, eps=1e-6, atol=1e-7, rtol=1e-5)


@pytest.mark.parametrize("remat", [1, 4, 10, 30])
def test_steps_made_again_give_the_same_bits(remat: int):
    def gradients(k: int | None) -> tuple[Tensor, ...]:
        generator = torch.Generator().manual_seed(0)
        state = {name: torch.rand(8, 8, generator=generator) for name in ("u", "v")}
        feed = torch.tensor(0.05)
        leaves = [x.requires_grad_() for x in (*state.values(), feed)]
        later = rollout(GrayScott(), state, 10, {"feed": feed}, remat=k)
        return torch.autograd.grad(loss(later), leaves)

    for kept, again in zip(gradients(None), gradients(remat), strict=True):
        assert torch.equal(kept, again)


def test_second_derivatives_go_through():
    u = torch.rand(4, 4, dtype=torch.float64)
    state = {"u": u, "v": 0.3 * u}

    def far(feed: Tensor) -> Tensor:
        return loss(rollout(GrayScott(), state, 3, {"feed": feed}))

    feed = torch.tensor(0.05, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradgradcheck(far, [feed])


def test_a_parameter_can_be_found_from_what_it_did():
    """What the gradient is for: the rate of a run, from its first and last state."""
    model, u = Heat(), torch.rand(12, 12, generator=torch.Generator().manual_seed(0))
    target = rollout(model, {"u": u}, 20, {"rate": 0.11})["u"]
    rate = torch.tensor(0.2, requires_grad=True)
    optimizer = torch.optim.LBFGS([rate], line_search_fn="strong_wolfe")

    def closure() -> float:
        optimizer.zero_grad()
        found = rollout(model, {"u": u}, 20, {"rate": rate}, remat=5)["u"]
        error = (found - target).square().sum()
        error.backward()
        return float(error.detach())

    optimizer.step(closure)
    assert float(rate.detach()) == pytest.approx(0.11, abs=1e-3)


class LiveBytes(TorchDispatchMode):
    """Counts the bytes of all tensors that are alive, and the most there ever were."""

    def __init__(self):
        super().__init__()
        self.alive: dict[int, int] = {}
        self.now = self.peak = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None):
        result = func(*args, **(kwargs or {}))
        for x in result if isinstance(result, tuple | list) else [result]:
            if not isinstance(x, torch.Tensor):
                continue
            storage = x.untyped_storage()
            if storage._cdata not in self.alive:
                self.alive[storage._cdata] = storage.nbytes()
                weakref.finalize(storage, self.forget, storage._cdata)
                self.now += storage.nbytes()
                self.peak = max(self.peak, self.now)
        return result

    def forget(self, key: int) -> None:
        self.now -= self.alive.pop(key)


def peak_bytes(remat: int | None) -> int:
    model = GrayScott()
    state = {name: torch.rand(16, 16, requires_grad=True) for name in ("u", "v")}
    rollout(model, state, 0)  # the trial of the step, once for a model, takes memory of its own
    gc.collect()
    with LiveBytes() as live:
        loss(rollout(model, state, 64, remat=remat)).backward()
    return live.peak


def test_keeping_few_states_needs_little_memory():
    everything, one_in_eight, only_the_first = (peak_bytes(k) for k in (None, 8, 64))
    assert one_in_eight < everything / 3
    assert one_in_eight < only_the_first / 3


def test_steps_between_kept_states_save_nothing():
    def saved(remat: int | None) -> int:
        count = 0

        def pack(x: Tensor) -> Tensor:
            nonlocal count
            count += x.ndim > 0
            return x

        u = torch.rand(8, 8, requires_grad=True)
        state = {"u": u, "v": u}
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
            later = rollout(GrayScott(), state, 12, remat=remat)
        assert later["u"].grad_fn is not None
        return count

    assert saved(None) >= 12
    assert saved(4) < saved(None) / 4


@pytest.fixture
def insisting() -> Iterator[None]:
    """A compiler that does not work is an error, not a notice."""
    with override({"compile.enabled": "on"}):
        yield


@pytest.mark.long
@pytest.mark.compiles
@pytest.mark.usefixtures("insisting")
# Inductor itself still imports what torch has deprecated.
@pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")
def test_compiled_steps_give_the_same_bits_and_are_compiled_once():
    state = swirl_state()
    model = Swirl()

    def gradients(**how: Any) -> tuple[Tensor, ...]:
        f, gain = (x.clone().requires_grad_() for x in (state["f"], torch.tensor(0.3).double()))
        later = rollout(model, {**state, "f": f}, 6, {"gain": gain}, **how)
        return later["f"], later["count"], *torch.autograd.grad(loss(later), [f, gain])

    plain = gradients()
    counters = torch._dynamo.utils.counters
    compiled = [gradients(compiled=True)]
    graphs = counters["stats"]["unique_graphs"]
    assert graphs > 0
    compiled += [gradients(compiled=True, remat=2), gradients(compiled=True)]
    assert counters["stats"]["unique_graphs"] == graphs
    for found in compiled:
        for one, other in zip(plain[:2], found[:2], strict=True):
            torch.testing.assert_close(other, one, rtol=1e-14, atol=1e-14)
        for one, other in zip(plain[2:], found[2:], strict=True):
            torch.testing.assert_close(other, one, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"steps": -1}, "cannot run -1 steps; time goes forward only"),
        ({"remat": 0}, "`remat` must be at least 1, got 0"),
        ({"state": {}}, r"`state` lacks the field `f` of Swirl \(it has none\)"),
        (
            {"state": {"f": torch.zeros(2, 4, 4), "counts": torch.zeros(4, 4)}},
            r"`state` lacks the field `count` of Swirl; did you mean `counts`\?",
        ),
        ({"state": {**swirl_state(), "g": torch.zeros(3)}}, "Swirl has no state `g`"),
        ({"state": {"f": torch.zeros(2, 4, 4), "count": torch.zeros(5, 4)}}, "`count` in"),
        ({"state": {"f": torch.zeros(2, 4), "count": torch.zeros(4)}}, "Swirl runs in 2 dims"),
        ({"params": {"gian": 0.1}}, r"`gian` is not a parameter of Swirl; did you mean `gain`"),
        ({"params": {"gain": 2.0}}, "`gain` must be from 0 to 1, got 2"),
        ({"params": {"gain": torch.ones(3)}}, r"must be a 0-d tensor, got the shape \(3,\)"),
        ({"inputs": {"wait": torch.zeros(SIZE)}}, r"no inputs `wait`; did you mean `weight`\?"),
        ({"inputs": {"weight": torch.zeros(3, 3)}}, "`weight` in `inputs` does not match"),
    ],
)
def test_misfits_are_refused_with_a_clear_message(change: dict[str, Any], text: str):
    arguments: dict[str, Any] = {"model": Swirl(), "state": swirl_state(), "steps": 2}
    with pytest.raises(ArgumentError, match=text):
        rollout(**{**arguments, **change})


def test_a_missing_input_is_named():
    class Bare(Swirl):
        def static(self, size: tuple[int, ...]):
            return {}

    with pytest.raises(ArgumentError, match="Bare needs `weight` in `inputs`"):
        rollout(Bare(), swirl_state(), 2)
    later = rollout(Bare(), swirl_state(), 2, inputs={"weight": torch.ones(SIZE)})
    assert later["count"].eq(2).all()
