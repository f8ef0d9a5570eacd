"""Phases on whole arrays between local steps: what they may do, and how they are held to it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from hotgrid.cluster import Communicator, HaloExchange, Mesh, join, run_ranks, take
from hotgrid.cluster.plan import (
    Link,
    best_plan,
    estimate,
    known_devices,
    rounds_of,
    simulate_schedule,
)
from hotgrid.errors import ArgumentError
from hotgrid.grid import (
    Field,
    Input,
    Model,
    Parameter,
    PhaseModel,
    Simulation,
    SimulationCheckpoints,
    Whole,
    pde,
    rollout,
)
from hotgrid.grid.forms.cut import job_of
from hotgrid.grid.forms.cut._cut_whole import CutWhole

SIZE = (12, 10)
MADE: list[float] = []


class Balanced(Model):
    """Heat that flows to neighbours, with a source; the phase takes away its mean."""

    fields = (Field("u"), Field("largest"))
    inputs = (Input("source"),)
    rate = Parameter(0.2, low=0, high=0.25)
    strength = Parameter(1.0)

    def step(self, state: Mapping[str, Any], inputs: Mapping[str, Any], params: Any):
        u = state["u"]
        around = u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1]
        flow = params["rate"] * (around - 4 * u[0, 0])
        return {"u": u[0, 0] + flow + inputs["source"].here, "largest": state["largest"].here}

    def phase(self, whole: Whole, state, inputs, params):
        less = whole.table(self.part, params["strength"])
        u = state["u"] - less * whole.mean(state["u"])
        # The grid is even in the source, so that the phase sees inputs, too.
        return {"u": u + 0 * inputs["source"], "largest": whole.max(u).expand_as(u)}

    def part(self, whole: Whole, strength: Tensor) -> Tensor:
        MADE.append(strength.item())
        return strength.clone()

    def initial(self, size: tuple[int, ...], generator: torch.Generator):
        u = torch.rand(size, generator=generator, dtype=torch.float64)
        return {"u": u, "largest": torch.zeros(size)}

    def static(self, size: tuple[int, ...]):
        return {"source": torch.linspace(0, 1, size[-1]).expand(size).clone()}


def simulation(model: Model | None = None, **options: Any) -> Simulation:
    plain = {"size": SIZE, "device": "cpu", "compiled": False, "dtype": torch.float64}
    return Simulation(model or Balanced(), **{**plain, **options})


def by_hand(u: Tensor, source: Tensor, steps: int) -> Tensor:
    for _ in range(steps):
        around = sum(u.roll(by, dim) for by in (-1, 1) for dim in (0, 1))
        u = u + 0.2 * (around - 4 * u) + source
        u = u - u.mean()
    return u


def test_a_phase_follows_every_local_step():
    sim = simulation()
    start, source = sim.state["u"], sim.model.static(SIZE)["source"].double()
    sim.run(9, progress=False)
    assert sim.form == "roll"
    expected = by_hand(start, source, 9)
    torch.testing.assert_close(sim.state["u"], expected)
    torch.testing.assert_close(sim.state["largest"], expected.max().expand(SIZE))


def test_runs_of_a_batch_are_reduced_apart():
    together = simulation(batch=3)
    begin = together.state
    together.run(5, progress=False)
    for run in range(3):
        alone = simulation(state={name: x[run] for name, x in begin.items()})
        alone.run(5, progress=False)
        torch.testing.assert_close(together.state["u"][run], alone.state["u"])


@pytest.mark.parametrize("mesh", ["2", "1x2", "2x2"])
def test_a_mesh_reduces_over_all_ranks(mesh: str):
    whole = simulation()
    whole.run(9, progress=False)

    def part(communicator: Communicator) -> dict[str, Tensor]:
        sim = simulation(mesh=mesh, communicator=communicator)
        sim.run(9, progress=False)
        return sim.state

    for state in run_ranks(Mesh(mesh).ranks, part):
        for name, x in whole.state.items():
            torch.testing.assert_close(state[name], x, rtol=0, atol=1e-14)


class Insulated(Balanced):
    """Heat that no face lets through; step and phase both read the source, the step far off."""

    fields = (Field("u", boundary="neumann"), Field("largest", boundary="neumann"))

    def step(self, state: Mapping[str, Any], inputs: Mapping[str, Any], params: Any):
        u, source = state["u"], inputs["source"]
        flow = params["rate"] * (u[-1, 0] + u[0, 1] - 2 * u[0, 0])
        return {
            "u": u[0, 0] + flow * source[0, -1] * source[1, 0],
            "largest": state["largest"].here,
        }

    def phase(self, whole: Whole, state, inputs, params):
        u = state["u"]
        return {"u": u - whole.mean(u * inputs["source"]) * inputs["source"]}


@pytest.mark.parametrize("mesh", ["2", "1x2", "2x2"])
def test_a_phase_on_a_bounded_mesh_sees_inputs_as_they_are(mesh: str):
    whole = simulation(Insulated())
    whole.run(6, progress=False)

    def part(communicator: Communicator) -> Tensor:
        sim = simulation(Insulated(), mesh=mesh, communicator=communicator)
        sim.run(6, progress=False)
        return sim.state["u"]

    for u in run_ranks(Mesh(mesh).ranks, part):
        torch.testing.assert_close(u, whole.state["u"], rtol=0, atol=1e-13)


@pytest.mark.parametrize("make", [Balanced, pde.Vorticity])
def test_gradients_over_ranks_are_those_of_the_whole_grid(make):
    model, size = make(), (12, 10)
    start = simulation(model, size=size).state
    strength = {} if make is Balanced else {"viscosity": torch.tensor(0.02).double()}

    def loss(state: dict[str, Tensor]) -> Tensor:
        return next(iter(state.values())).pow(3).sum()

    name = model.fields[0].name
    x = start[name].clone().requires_grad_()
    loss(rollout(model, {**start, name: x}, 4, strength)).backward()

    def part(communicator: Communicator) -> Tensor | None:
        halo = HaloExchange(communicator, "2x2", size, 1)
        own = {key: take(value, halo.block) for key, value in start.items()}
        own[name].requires_grad_()
        loss(rollout(make(), own, 4, strength, halo=halo, remat=2)).backward()
        return own[name].grad

    found = join(run_ranks(4, part), Mesh("2x2").blocks(size))
    assert x.grad is not None
    torch.testing.assert_close(found, x.grad, rtol=1e-10, atol=1e-12)


def test_a_table_is_made_again_only_when_its_parameter_changes():
    sim = simulation()
    MADE.clear()
    sim.run(5, progress=False)
    assert MADE == [1]
    sim.set(strength=0.0)
    before = sim.state["u"].mean()
    sim.run(1, progress=False)
    assert MADE == [1, 0]
    torch.testing.assert_close(sim.state["u"].mean(), before + 0.5)
    sim.schedule(strength="1.0 @ 8")
    sim.run(3, progress=False)
    assert abs(sim.state["u"].mean()) < 1e-15


def test_checkpoints_go_on_from_where_they_were(tmp_path: Path):
    first, second = simulation(), simulation(seed=5)
    first.run(4, progress=False)
    with SimulationCheckpoints(first, tmp_path) as kept:
        kept.save()
    SimulationCheckpoints(second, tmp_path).load()
    for sim in (first, second):
        sim.run(4, progress=False)
    assert torch.equal(first.state["u"], second.state["u"])


@pytest.mark.parametrize("form", ["padded", "strips"])
def test_forms_that_keep_cells_otherwise_refuse_a_phase(form: str):
    with pytest.raises(ArgumentError, match=f"`{form}` cannot run here: the model has a phase"):
        simulation(form=form)


def test_margins_last_for_one_step():
    def part(communicator: Communicator) -> str:
        with pytest.raises(ArgumentError) as caught:
            simulation(mesh="2", depth=4, communicator=communicator)
        return str(caught.value)

    assert "`depth` 4 is impossible for Balanced: its phase" in run_ranks(2, part)[0]


class Bad(PhaseModel):
    fields = (Field("u"), Field("n", dtype=torch.int32))
    rate = Parameter(0.5)

    def __init__(self, how: str) -> None:
        super().__init__()
        self.how = how

    def phase(self, whole, state, inputs, params):
        u = state["u"]
        return {
            "own": lambda: {"u": u * self.rate},
            "written": lambda: {"u": u.add_(1)},
            "name": lambda: {"v": u},
            "shape": lambda: {"u": whole.mean(u)},
            "complex": lambda: {"u": torch.complex(u, u)},
            "fraction": lambda: {"n": u},
            "list": lambda: [u],
        }[self.how]()


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("own", r"`Bad.phase` reads `self.rate`.* read `params\['rate'\]`"),
        ("written", "`Bad.phase` writes into `u`, which it was given"),
        ("name", r"returned `v`, which is not one of its fields.*they are u, n"),
        ("shape", r"real numbers of the shape \(12, 10\) for the field `u`, got .*\(1, 1\)"),
        ("complex", "real numbers of the shape .* got torch.complex128"),
        ("fraction", "returned torch.float64 for the field `n`, which is torch.int32"),
        ("list", "must return a dict from names of fields to tensors, got list"),
    ],
)
def test_what_a_phase_must_not_do_is_named(how: str, said: str):
    with pytest.raises(ArgumentError, match=said):
        simulation(Bad(how)).run(1, progress=False)


def test_half_precision_is_kept_but_not_transformed():
    full, half = (
        simulation(pde.Vorticity(), size=(16, 16), dtype=torch.float32, storage=storage)
        for storage in (None, torch.bfloat16)
    )
    half.state = {"w": full.state["w"]}
    for sim in (full, half):
        sim.run(2, progress=False)
    assert half.state["w"].dtype == torch.bfloat16
    torch.testing.assert_close(half.state["w"].float(), full.state["w"], rtol=0, atol=0.02)


@pytest.mark.long
@pytest.mark.compiles
@pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")
def test_fused_elementwise_work_is_that_of_plain_tensors():
    plain, fused = (
        simulation(
            pde.KuramotoSivashinsky(), size=(1 << 17,), dtype=torch.float32, compiled=compiled
        )
        for compiled in (False, True)
    )
    for sim in (plain, fused):
        sim.run(3, progress=False)
    torch.testing.assert_close(fused.state["u"], plain.state["u"], rtol=0, atol=1e-6)


@pytest.mark.parametrize("mesh", ["4x1", "2x2"])
def test_the_planner_counts_what_a_phase_sends(mesh: str):
    model, size = pde.Vorticity(), (64, 64)

    def part(communicator: Communicator) -> float:
        sim = simulation(
            model.changed(), size=size, dtype=torch.float32, mesh=mesh,
            communicator=communicator,
        )  # fmt: skip
        sim.run(2, progress=False)
        return sim._form._phase._whole.fourier.bytes_sent / 2

    job = job_of(model, size, torch.float32)
    planned = estimate(job, known_devices()["H200"], Link(450e9, 3e-6), mesh, 1)
    # The planner leaves out that half of the modes is one more than half of the cells.
    assert planned.bytes == pytest.approx(max(run_ranks(4, part)), rel=0.1)


def test_the_planner_keeps_rows_whole_and_margins_shallow():
    job = job_of(pde.NavierStokes(), (1024, 1024), torch.float32)
    plan = best_plan(job, known_devices()["H200"], Link(450e9, 3e-6), 4)
    assert str(plan.best.mesh) == "4x1"
    assert {each.depth for each in plan.estimates} == {1}
    assert plan.best.efficiency < 1
    assert plan.best.hidden == plan.best.with_overlap(True).hidden == 0


def test_ranks_that_are_all_on_time_take_as_long_as_planned():
    link = Link(450e9, 3e-6)
    job = job_of(pde.Vorticity(), (256, 256), torch.float32)
    best = best_plan(job, known_devices()["H200"], link, 4).best
    busy = best.compute + best.packing
    found = simulate_schedule(best.mesh, rounds_of(best, job, link), busy, cycles=5)
    assert found.seconds_per_cycle == pytest.approx(best.step_time)


@pytest.mark.long
@pytest.mark.compiles
def test_planes_of_a_fused_function_are_written_side_by_side():
    def both(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        return x + y, x * y

    x, y = torch.rand(2, 3, 4, 5).unbind(0)
    compiled = Whole((4, 5), fuse=lambda f: torch.compile(f, fullgraph=True, dynamic=False))
    with torch.no_grad():
        found = compiled.fused(both, planes=2)(x, y)
    assert torch.equal(found, torch.stack(both(x, y)))
    assert torch.equal(found, Whole((4, 5)).fused(both, planes=2)(x, y))


def test_an_inverse_transform_may_leave_the_division_to_a_coefficient():
    u, size = torch.rand(12, 10, dtype=torch.float64), (12, 10)

    def part(communicator: Communicator) -> tuple[Tensor, Tensor]:
        whole = CutWhole(communicator, Mesh("2x1"), size)
        own = take(u, whole.fourier.block)
        real = whole.irfft(whole.rfft(own) / 120, norm="forward")
        return real - own, whole.ifft(whole.fft(own) / 120, norm="forward") - own

    whole = Whole(size)
    torch.testing.assert_close(whole.irfft(whole.rfft(u) / 120, norm="forward"), u)
    for differences in run_ranks(2, part):
        assert all(each.abs().max() < 1e-14 for each in differences)
