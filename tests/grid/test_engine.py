"""The engine: what a simulation accepts, and its errors."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st

from hotgrid.config import override
from hotgrid.errors import ArgumentError
from hotgrid.grid import (
    Field,
    Model,
    Parameter,
    lbm,
    life,
    pde,
)
from hotgrid.grid.forms._memory import free_memory, needed
from hotgrid.grid.forms.padded._padded import PaddedForm

from .engine_case import CPU, SIZE, Spread, simulation

# What it accepts.


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"state": {"haet": torch.zeros(SIZE)}}, r"no state `haet`; did you mean `heat`\?"),
        ({"state": {"heat": torch.zeros(8, 11)}}, "(?s)`heat` in `state` does not match.*11"),
        ({"state": {"heat": torch.zeros(2, 8, 10)}}, "`heat` in `state` does not match"),
        ({"inputs": {"wieght": torch.ones(SIZE)}}, r"no inputs `wieght`; did you mean `wei"),
        ({"inputs": {"weight": torch.ones(3)}}, "`weight` in `inputs` does not match"),
        ({"size": (8,)}, r"Spread runs in 2 dims, but `size` \(8,\) has 1"),
        ({"size": 8}, r"Spread runs in 2 dims, but `size` \(8,\) has 1"),
        ({"size": (0, 8)}, r"one positive whole number for each dim, got \(0, 8\)"),
        ({"size": (8.0, 8)}, r"one positive whole number for each dim, got \(8\.0, 8\)"),
        ({"form": "paded"}, r"'paded' is unknown; use .*, roll; did you mean `padded`\?"),
        ({"form": "graph"}, "`graph` cannot run here: it records CUDA graphs and needs a GPU"),
        ({"device": "gpu"}, "the device 'gpu' cannot be used here"),
        ({"device": "cuda:99"}, "the device 'cuda:99' cannot be used here"),
        ({"batch": 0}, "`batch` must be at least 1, got 0"),
        ({"batch": 3, "state": {"heat": torch.zeros(2, 8, 10)}}, "`heat` in `state` does not"),
        (
            {"size": (1_000_000, 1_000_000)},
            r"1000000x1000000 needs about 48000\.0 GB on cpu .* a smaller `size` or a narr",
        ),
        (
            {"size": (1_000_000, 1_000_000), "batch": 3, "storage": torch.float16},
            r"1000000x1000000 with `batch` 3 needs about 76000\.0 GB .* `size` or `batch`$",
        ),
    ],
)
def test_misfits_are_refused_with_a_clear_message(options: dict[str, Any], text: str):
    with pytest.raises(ArgumentError, match=text):
        simulation(**options)


@pytest.mark.parametrize(
    ("parameters", "text"),
    [
        ({"raet": 0.1}, r"`raet` is not a parameter of Bounded; did you mean `rate`\?"),
        ({"xyz": 0.1}, r"of Bounded \(its parameters are rate, depth\)"),
        ({"rate": 0.3}, r"`rate` must be from 0 to 0\.25, got 0\.3 \(flow\)"),
        ({"rate": float("nan")}, r"`rate` must be from 0 to 0\.25, got nan"),
        ({"rate": "0.1"}, "`rate` must be a number, got '0.1'"),
        ({"rate": True}, "`rate` must be a number, got True"),
        ({"depth": 1}, "`depth` must be above 1, got 1"),
    ],
)
def test_a_parameter_that_does_not_fit_is_refused(parameters: dict[str, Any], text: str):
    class Bounded(Spread):
        rate = Parameter(0.2, "flow", low=0, high=0.25)
        depth = Parameter(2, above=1)

    with pytest.raises(ArgumentError, match=text):
        Bounded(**parameters)


def test_the_share_of_memory_that_a_plan_may_use_can_be_set():
    rows = int(0.02 * free_memory(CPU) / 48) // 1000
    with override({"memory.limit": 0.01}), pytest.raises(ArgumentError, match="1% of the free"):
        simulation(size=(rows, 1000))


def test_what_is_planned_is_what_was_measured():
    """Bytes a cell: how much a process grew at most, compiled, on a CPU; measured by hand."""
    for model, size, measured in (
        (life.Life(), (16384, 32768), 1.58),
        (life.Life(packed=False), (16384, 16384), 5.2),
        (pde.Heat(), (6144, 6144), 17.1),
        (pde.GrayScott(), (4096, 4096), 42.9),
        (lbm.Karman(), (1024, 4096), 212),
        (lbm.TaylorGreen("D3Q19"), (128, 128, 128), 438),
    ):
        planned = needed(model, size, torch.float32, 1, on_cpu=True).device / np.prod(size)
        assert planned == pytest.approx(measured, rel=0.3)


def test_on_another_device_the_state_to_begin_from_takes_main_memory():
    need = needed(pde.Heat(), (100, 100), torch.float32, 5, on_cpu=False)
    # Three states and one to look at, of five runs; made one run after the other.
    assert (need.device, need.main) == (4 * 5 * 40_000, 2 * 40_000 + 40_000)


def test_the_size_that_does_not_fit_is_shown_in_cells():
    with pytest.raises(ArgumentError, match=r"grid of 4194304x4194304 needs about .* `size`$"):
        simulation(life.Life(), size=(1 << 22, 1 << 22))


def test_free_memory_counts_the_disk_cache_and_works_without_proc(monkeypatch: Any):
    with_cache = free_memory(CPU)
    monkeypatch.setattr("hotgrid.grid.forms._memory.Path", lambda path: _Unreadable())
    assert 0 < free_memory(CPU) <= 1.1 * with_cache


class _Unreadable:
    def read_text(self, encoding: str) -> str:
        raise FileNotFoundError(encoding)


def test_a_missing_input_is_named():
    class Bare(Spread):
        def static(self, size: tuple[int, ...]):
            return {}

    with pytest.raises(ArgumentError, match="Bare needs `weight` in `inputs`"):
        simulation(Bare())
    simulation(Bare(), inputs={"weight": torch.ones(SIZE)}).run(1)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"steps": -1}, "cannot run -1 steps; time goes forward only"),
        ({"time": -1.0}, "cannot run -10 steps"),
        ({"time": float("inf")}, "`time` must be a finite number, got inf"),
        ({"steps": 1.5}, r"`steps` must be a whole number, got 1\.5"),
        ({"steps": 1, "time": 1.0}, "give `steps` or `time`, not both"),
        ({}, "give `steps`, `time` or `until`"),
        ({"steps": 1, "check_every": 0}, "`check_every` must be at least 1, got 0"),
    ],
)
def test_a_run_that_makes_no_sense_is_refused(arguments: dict[str, Any], text: str):
    sim = simulation()
    with pytest.raises(ArgumentError, match=text):
        sim.run(**arguments)
    assert sim.step_count == 0


def test_a_view_or_period_that_does_not_exist_is_refused():
    sim = simulation()
    with pytest.raises(ArgumentError, match=r"no view `clod`; did you mean `cold`\?"):
        sim.view("clod")
    with pytest.raises(ArgumentError, match="`steps` must be at least 1, got 0"):
        sim.every(0, lambda s: None)

    class Blind(Model):
        fields = (Field("f", components=2),)

        def step(self, state: Any, inputs: Any, params: Any):
            return {"f": [state["f"].part(0).here, state["f"].part(1).here]}

    with pytest.raises(ArgumentError, match="Blind has no views; write a `@view`"):
        simulation(Blind(), size=(4, 4)).view()


# What a step may do.


def stepping(step: Any, fields: tuple[Field, ...] = (Field("u"),), reach: int = 1) -> Model:
    """A model with nothing but a step."""

    class Stepping(Model):
        radius = reach

        def step(self, state: Any, inputs: Any, params: Any):
            return step(state)

    Stepping.fields = fields
    return Stepping()


MISTAKES = {
    "too far": (
        lambda s: {"u": s["u"][0, 2]},
        r"\(0, 2\) looks further than the model's radius of 1; set `radius = 2`",
    ),
    "too few dims": (
        lambda s: {"u": s["u"][1]},
        r"the offset \(1,\) has 1 numbers, but the grid has 2 dims",
    ),
    "a field is missing": (
        lambda s: {"w": s["u"].here},
        r"`Stepping\.step` returned w, but not its field `u`",
    ),
    "too many components": (
        lambda s: {"u": [s["u"].here, s["u"].here]},
        r"must return 1 component\(s\) for the field `u`",
    ),
    "no tensor": (lambda s: {"u": 1.0}, r"must return 1 component\(s\) for the field `u`"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
@pytest.mark.parametrize("form", ["roll", "padded"])
def test_a_mistake_in_a_step_is_named(mistake: str, form: str):
    step, text = MISTAKES[mistake]
    sim = simulation(stepping(step), size=(4, 4), form=form)
    with pytest.raises(ArgumentError, match=text):
        sim.run(1)


@pytest.mark.compiles
@pytest.mark.parametrize("mistake", ["too far", "a field is missing"])
def test_a_mistake_in_a_compiled_step_is_named_just_as_well(mistake: str):
    step, text = MISTAKES[mistake]
    sim = simulation(stepping(step), size=(4, 4), compiled=True)
    with pytest.raises(ArgumentError, match=text):
        sim.run(1)


def test_a_window_is_of_one_component():
    model = stepping(lambda s: {"f": s["f"].windows()}, (Field("f", components=2),))
    with pytest.raises(ArgumentError, match=r"windows\(\) is for one component"):
        simulation(model, size=(4, 4)).run(1)


@given(data=st.data(), rank=st.sampled_from([1, 2, 3]), depth=st.integers(1, 5))
def test_every_form_sees_the_neighbour_at_any_offset(data: Any, rank: int, depth: int):
    """Numbered cells, moved by one offset again and again: numpy says where they must be."""
    radius = data.draw(st.integers(1, 3))
    size = data.draw(st.tuples(*[st.integers(radius, 7)] * rank))
    offset = data.draw(st.tuples(*[st.integers(-radius, radius)] * rank))
    steps = data.draw(st.integers(0, 8))
    model = stepping(lambda s: {"u": s["u"][offset]}, reach=radius)
    model.ranks = (rank,)
    cells = torch.arange(float(np.prod(size))).reshape(size)
    expected = np.roll(cells.numpy(), [-steps * o for o in offset], range(rank))
    sims = [
        simulation(model, size=size, state={"u": cells}, form=f) for f in ("roll", "padded")
    ]
    sims[1]._form = PaddedForm(sims[1]._setting, depth)
    sims[1].reset()
    for sim in sims:
        sim.run(steps)
        np.testing.assert_array_equal(sim.state["u"].numpy(), expected)


@pytest.mark.parametrize("form", ["roll", "padded"])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_beyond_the_ends_of_a_bounded_field_lies_its_constant(form: str, rank: int):
    """A bounded and a periodic field side by side, against numpy's padding."""
    size, ahead = (5, 6, 7)[:rank], (1,) * rank
    model = stepping(
        lambda s: {"u": s["u"][ahead] + s["w"][ahead], "w": s["w"][ahead]},
        (Field("u", boundary=3.0), Field("w")),
    )
    model.ranks = (rank,)
    u, w = torch.rand(2, *size, dtype=torch.float64)
    sim = simulation(model, size=size, state={"u": u, "w": w}, form=form, dtype=torch.float64)
    sim.run(6)
    u, w = u.numpy(), w.numpy()
    for _ in range(6):
        w = np.roll(w, (-1,) * rank, range(rank))
        u = np.pad(u, (0, 1), constant_values=3.0)[(slice(1, None),) * rank] + w
    np.testing.assert_array_equal(sim.state["u"].numpy(), u)


def test_a_grid_smaller_than_the_radius_runs_by_rolling_alone():
    model = stepping(lambda s: {"u": s["u"][3, 0] + s["u"][0, -3]}, reach=3)
    with pytest.raises(
        ArgumentError, match="`padded` cannot run here: it needs at least 3 cells"
    ):
        simulation(model, size=(2, 8), form="padded")
    u = torch.rand(2, 8)
    sim = simulation(model, size=(2, 8), state={"u": u})
    sim.run(1)
    assert sim.form == "roll"
    assert torch.equal(sim.state["u"], u.roll(-3, 0) + u.roll(3, 1))


@pytest.mark.parametrize("storage", [torch.float16, torch.bfloat16])
def test_fields_may_be_kept_in_a_narrower_type_than_they_are_computed_in(storage: torch.dtype):
    states = []
    for form in ("roll", "padded"):
        sim = simulation(storage=storage, form=form)
        sim.run(9)
        states.append(sim.state)
    assert states[0]["heat"].dtype == storage
    assert states[0]["age"].dtype == torch.int32
    assert torch.equal(states[0]["heat"], states[1]["heat"])
    u = simulation().state["heat"].to(storage)
    for _ in range(9):
        x = u.float()
        around = x.roll(1, 0) + x.roll(-1, 0) + x.roll(1, 1) + x.roll(-1, 1)
        u = (x + 0.2 * (around - 4 * x)).to(storage)
    torch.testing.assert_close(states[0]["heat"], u)
