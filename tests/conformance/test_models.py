"""Every exported model of the grid in the same suite of tests.

A model enters by being exported from a package inside `hotgrid.grid`. It must be made
without arguments; what cannot be is listed in `MADE_BY_HAND`, with the arguments.
"""

import copy
import importlib
import inspect
import itertools
import math
import pkgutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import hotgrid.grid
from hotgrid.cluster import Communicator, Mesh, run_ranks, take
from hotgrid.config import override
from hotgrid.grid import Model, Neighbours, Simulation, VectorModel, rollout
from hotgrid.grid.forms._choice import kinds_of
from hotgrid.grid.forms._roll import RollForm
from hotgrid.grid.forms.padded._padded import PaddedForm
from hotgrid.grid.model import GridWindow, has_phase, in_window

# No side is like another; columns are a multiple of 32, for cells packed into words.
GRIDS = {1: (64,), 2: (40, 96), 3: (6, 8, 32)}
CUT_GRIDS = {1: (128,), 2: (48, 128), 3: (24, 16, 32)}
# Every depth and every way of exchanging on some mesh; KEY_MODELS have them all.
CUTS = {
    "1x1": {"depth": 8},
    "2x1": {"depth": 4, "form": "padded"},
    "1x2": {"depth": 1},
    "2x2": {"depth": 1, "overlap": True, "form": "padded"},
    "3x1": {"depth": 8},
}
KEY_MODELS = ("pde.Heat", "lbm.Karman", "lbm.Cavity", "lbm.TaylorGreen", "life.Life")
# A step has about a thousand operations.
HEAVY = ("neural.FlowLenia", "pde.Gas", "pde.ShallowWater")


def majority(windows: Tensor) -> Tensor:
    """A rule over windows, in any number of dims and with or without a batch."""
    rank = windows.ndim // 2
    return 2 * windows.sum(tuple(range(-rank, 0))) > math.prod(windows.shape[-rank:])


def stirred(size: tuple[int, ...], generator: torch.Generator) -> tuple[Tensor, list[Tensor]]:
    """A fluid with another velocity in every cell."""
    density, *velocity = torch.rand(3, *size, generator=generator, dtype=torch.float64) - 0.5
    return 1 + 0.02 * density, [0.1 * u for u in velocity]


# Makings with arguments. The bare name of a model replaces `Model()`, for models whose
# first argument is code; a longer title adds a second way through the engine.
MADE_BY_HAND: dict[str, Callable[[Any], Model]] = {
    "life.WindowRule": lambda cls: cls(majority),
    "life.Life on a plane": lambda cls: cls(topology="plane"),
    "life.Life in bytes": lambda cls: cls(packed=False),
    "life.Life with age": lambda cls: cls(age=True),
    "life.Life with noise": lambda cls: cls(noise=0.01),
    "life.Life on a Klein bottle": lambda cls: cls(topology="klein"),
    # Stirred: where nothing deviates from equilibrium, its rate has no derivative.
    "lbm.Flow by KBC": lambda cls: cls(collision="kbc", start=stirred),
    "lbm.DoubleShear by cumulants": lambda cls: cls("cumulant"),
    # As far as the small grids allow, and a width with which it lives.
    "neural.Lenia": lambda cls: cls(radius=2, width=0.06),
    # Few neighbours, as its step reads them all again for each cell that flows, and so slow
    # that no edge of a square crosses that of a cell: finite differences have a kink there.
    "neural.FlowLenia": lambda cls: cls(kernel=2, window=1, rate=0.02),
    "life.LargerThanLife": lambda cls: cls("R2,C3,M1,S5..9,B6..8,NM"),
    "pde.NavierStokes in 3-D": lambda cls: cls(dims=3),
}


@dataclass(frozen=True)
class Subject:
    """A model on a small grid; made anew for every test, so that none leaves a trace."""

    name: str
    make: Callable[[], Model]
    size: tuple[int, ...]

    def simulation(self, **options: Any) -> Simulation:
        plain = {"size": self.size, "device": "cpu", "form": "roll", "compiled": False}
        return Simulation(self.make(), **{**plain, **options})

    def __str__(self) -> str:
        return f"{self.name} {'x'.join(map(str, self.size))}"


def exported() -> dict[str, type[Model]]:
    """Every public model that can be run, by package and name."""
    inside = pkgutil.iter_modules(hotgrid.grid.__path__)
    packages = [package.name for package in inside if package.ispkg]
    return {
        f"{package}.{name}": value
        for package in packages
        for name, value in vars(importlib.import_module(f"hotgrid.grid.{package}")).items()
        if inspect.isclass(value)
        and issubclass(value, Model)
        and not inspect.isabstract(value)
        and not name.startswith("_")
    }


EXPORTED = exported()
MAKERS: dict[str, Callable[[], Model]] = {
    **EXPORTED,
    **{
        title: partial(make, EXPORTED[title.split()[0]]) for title, make in MADE_BY_HAND.items()
    },
}
SUBJECTS = [
    Subject(name, make, GRIDS[rank])
    for name, make in sorted(MAKERS.items())
    for rank in make().ranks
]
# A phase needs whole arrays, and has no reach; forms that keep cells otherwise refuse it.
PHASED = {s.name for s in SUBJECTS if has_phase(s.make())}
LOCAL = [s for s in SUBJECTS if s.name not in PHASED]
FLOATING = [s for s in SUBJECTS if s.make().differentiable]
KEEPING = [s for s in SUBJECTS if s.make().conserved]
# One of every package, a key model if it has one, in its default dims: all take minutes.
# Cells as vectors have a form of their own to be compiled; others take minutes for them.
COMPILED = {
    s.name.split(".")[0]: s
    for s in sorted(SUBJECTS, key=lambda s: s.name in KEY_MODELS)
    if len(s.size) == len(s.make().size)
    and not isinstance(s.make(), VectorModel)
    and s.name not in HEAVY
}.values()


def marks(subject: object) -> list[pytest.MarkDecorator]:
    """`make test` runs models in the dims of their default grid, the others are `long`."""
    if not isinstance(subject, Subject) or subject.name in KEY_MODELS:
        return []
    other = len(subject.size) != len(subject.make().size)
    return [pytest.mark.long] * (other or subject.name in HEAVY)


def enrolled(subjects: Sequence[Subject]) -> pytest.MarkDecorator:
    params = [pytest.param(s, id=str(s), marks=marks(s)) for s in subjects]
    return pytest.mark.parametrize("subject", params)


every_model = enrolled(SUBJECTS)
every_local_model = enrolled(LOCAL)
every_model_and_form = pytest.mark.parametrize(
    ("subject", "form"),
    [
        # What is asked of forms here does not depend on the model: key models stand for all.
        pytest.param(
            s,
            form,
            id=f"{s} {form}",
            marks=marks(s)
            or [pytest.mark.long] * (form == "padded" and s.name not in KEY_MODELS),
        )
        for s in SUBJECTS
        for form in ("roll", "padded")
        if form == "roll" or s.name not in PHASED
    ],
)


@cache
def reference(subject: Subject, steps: int) -> dict[str, Tensor]:
    """The state after a number of steps: uncompiled, whole arrays, seed 0."""
    sim = subject.simulation()
    sim.run(steps)
    return sim.state


def assert_same(found: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> None:
    assert list(found) == list(expected)
    for name, x in expected.items():
        assert found[name].dtype == x.dtype
        assert torch.equal(found[name], x), f"`{name}` differs"


def assert_near(found: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> None:
    """Equal within single precision; what is not a floating number, equal."""
    assert list(found) == list(expected)
    for name, x in expected.items():
        exact = not x.is_floating_point()
        bound = 0 if exact else 1e-5 * (1 + x.abs().max().item())
        torch.testing.assert_close(found[name].to(x), x, rtol=0, atol=bound)


def test_every_package_that_holds_models_is_taken_up():
    there = {package.name for package in pkgutil.iter_modules(hotgrid.grid.__path__)}
    assert {name.split(".")[0] for name in EXPORTED} >= {"life", "lbm", "pde"} & there
    assert {subject.name for subject in SUBJECTS} == set(MAKERS)


@every_model
def test_it_begins_with_all_its_fields_and_depends_on_the_seed_alone(subject: Subject):
    model = subject.make()
    first, again = (
        model.initial(subject.size, torch.Generator().manual_seed(3)) for _ in range(2)
    )
    assert_same(first, again)
    for field in model.fields:
        x = first[field.name]
        assert x.shape == ((field.components,) if field.components > 1 else ()) + subject.size
        assert x.isfinite().all()
    assert len(model.size) in model.ranks


@every_model
def test_two_runs_are_finite_and_have_the_same_bits(subject: Subject):
    sim = subject.simulation()
    sim.run(20)
    assert_same(sim.state, reference(subject, 20))
    assert all(x.isfinite().all() for x in sim.state.values())


@every_model
def test_single_precision_is_close_to_double(subject: Subject):
    start = reference(subject, 0)
    sims = [
        subject.simulation(dtype=dtype, state=start) for dtype in (torch.float32, torch.float64)
    ]
    for sim in sims:
        sim.run(5)
    assert_near(sims[0].state, sims[1].state)


if torch.cuda.is_available():

    @every_model
    def test_a_gpu_agrees(subject: Subject):
        sim = subject.simulation(device="cuda")
        sim.run(5)
        assert_near({k: x.cpu() for k, x in sim.state.items()}, reference(subject, 5))


@every_local_model
@pytest.mark.parametrize("depth", [1, pytest.param(2, marks=pytest.mark.long), 4])
def test_padded_steps_have_the_bits_of_whole_ones(subject: Subject, depth: int):
    sim = subject.simulation()
    sim._form = PaddedForm(sim._setting, depth)
    sim.reset()
    sim.run(20)
    assert_same(sim.state, reference(subject, 20))


@every_model
def test_every_form_that_can_run_it_has_the_bits_of_whole_arrays(subject: Subject):
    setting = subject.simulation()._setting
    forms = [form for form in kinds_of(setting) if form is not RollForm]
    able = [form.name for form in forms if not form.obstacle(setting)]
    assert ("padded" in able) == (subject.name not in PHASED)
    for name in able:
        sim = subject.simulation(form=name)
        assert sim.form == name
        sim.run(7)
        twin = sim.fork()
        twin.run(3)
        assert_same(twin.state, reference(subject, 10))
        sim.run(13)
        assert_same(sim.state, reference(subject, 20))
        sim.reset()
        assert_same(sim.state, reference(subject, 0))


def assert_cut(subject: Subject, mesh: str, steps: int, **options: Any) -> None:
    """A cut grid has the bits of a whole one, and shows the same."""
    subject = replace(subject, size=CUT_GRIDS[len(subject.size)])
    if len(subject.size) == 1:
        mesh = str(Mesh(mesh).ranks)
    # A margin is not wider than a block.
    rows = subject.size[0] // Mesh(mesh).shape[0]
    options["depth"] = min(options["depth"], rows // max(1, subject.make().radius))

    def part(communicator: Communicator) -> tuple[Any, ...]:
        sim = subject.simulation(mesh=mesh, communicator=communicator, **options)
        sim.run(steps // 3)
        twin = sim.fork()
        sim.run(steps - steps // 3)
        return sim.state, twin.state, sim.observe()

    seen = reference(subject, steps), reference(subject, steps // 3)
    alone = subject.simulation(state=seen[0]).observe()
    for state, forked, observed in run_ranks(Mesh(mesh).ranks, part):
        assert_same(state, seen[0])
        assert_same(forked, seen[1])
        # Sums of parts round differently.
        assert observed == pytest.approx(alone, rel=1e-12, abs=1e-9)


@enrolled([s for s in SUBJECTS if s.make().windowed])
def test_a_window_of_the_start_is_that_of_the_whole(subject: Subject):
    """Blocks of a mesh, and for inputs a block with margins that go around the ends."""
    model, size = subject.make(), subject.size

    def begun(size: tuple[int, ...]) -> dict[str, Tensor]:
        return model.initial(size, torch.Generator().manual_seed(7))

    mesh = Mesh("3" if len(size) == 1 else "3x2")
    for block in mesh.blocks(size):
        for make, box in ((begun, block), (model.static, block.padded(2))):
            window = GridWindow(box)
            found = {name: in_window(x, window) for name, x in make(window).items()}
            assert_same(found, {name: take(x, box) for name, x in make(size).items()})


def spread(some: int, of: int, *values: Sequence[Any]) -> list[Any]:
    """All combinations; `make test` runs a sample, the others are `long`."""
    return [
        pytest.param(
            *(value for _, value in combination),
            marks=[pytest.mark.long] * (sum(i for i, _ in combination) % of >= some)
            or [mark for _, value in combination for mark in marks(value)],
            id=" ".join(str(value) for _, value in combination),
        )
        for combination in itertools.product(*map(enumerate, values))
    ]


@pytest.mark.parametrize(("subject", "mesh"), spread(1, 11, LOCAL, [*CUTS]))
def test_a_grid_cut_over_ranks_has_the_bits_of_a_whole_one(subject: Subject, mesh: str):
    # Five exchanges or more.
    assert_cut(subject, mesh, max(16, 5 * CUTS[mesh]["depth"]), **CUTS[mesh])


@pytest.mark.parametrize(
    ("subject", "mesh"),
    spread(1, 3, [s for s in SUBJECTS if s.name in PHASED], ["2x1", "1x2", "2x2", "4x1"]),
)
def test_a_phase_over_ranks_differs_from_a_whole_one_by_rounding(subject: Subject, mesh: str):
    """Transforms of parts round differently, and a flow carries that on: 1e-9 in double."""
    subject = replace(subject, size=CUT_GRIDS[len(subject.size)])
    mesh = str(Mesh(mesh).ranks) if len(subject.size) == 1 else mesh
    whole = subject.simulation(dtype=torch.float64)
    whole.run(12)

    def part(communicator: Communicator) -> tuple[Any, ...]:
        sim = subject.simulation(mesh=mesh, communicator=communicator, dtype=torch.float64)
        sim.run(5)
        twin = sim.fork()
        sim.run(7)
        twin.run(7)
        return sim.state, twin.state, sim.observe()

    for state, forked, observed in run_ranks(Mesh(mesh).ranks, part):
        assert_same(forked, state)
        for name, x in whole.state.items():
            torch.testing.assert_close(state[name], x, rtol=0, atol=1e-9, msg=name)
        assert observed == pytest.approx(whole.observe(), rel=1e-9, abs=1e-9)


KEY_SUBJECTS = [s for s in SUBJECTS if s.name in KEY_MODELS and len(s.size) == 2]


@pytest.mark.parametrize(
    ("subject", "mesh", "depth"), spread(1, 11, KEY_SUBJECTS, [*CUTS], [1, 4, 8])
)
def test_every_mesh_and_depth_give_the_same_bits(subject: Subject, mesh: str, depth: int):
    # Messages behind the interior on every second of them.
    overlap = (Mesh(mesh).ranks + depth) % 2 == 1
    assert_cut(subject, mesh, 40, depth=depth, overlap=overlap)


@every_local_model
def test_changes_spread_no_further_than_reach(subject: Subject):
    """Change one stored number, and look where it shows after five steps."""
    sim = subject.simulation()
    model = sim._setting.model
    far = model.reach(5, len(subject.size))
    assert all(m >= model.radius for m in model.reach(1, len(subject.size)))
    begin = {name: x.clone() for name, x in sim._form.read().items()}
    after = []
    for change in (0, 1):
        for x in begin.values():
            x[(..., *[0] * len(far))] += change
        sim._form.load({name: x.clone() for name, x in begin.items()})
        sim._form.run(5)
        after.append({name: x.clone() for name, x in sim._form.read().items()})
    for name, x in after[0].items():
        size = x.shape[-len(far) :]
        places = (x != after[1][name]).nonzero()[:, -len(far) :]
        for axis, (n, most) in enumerate(zip(size, far, strict=True)):
            place = places[:, axis]
            assert (torch.minimum(place, n - place) <= most).all(), f"`{name}` along {axis}"


@pytest.fixture
def insisting() -> Iterator[None]:
    """A compiler that does not work is an error, not a notice."""
    with override({"compile.enabled": "on"}):
        yield


@pytest.mark.compiles
@pytest.mark.usefixtures("insisting")
# Inductor itself still imports what torch has deprecated.
@pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")
@pytest.mark.parametrize(
    ("subject", "form"), spread(1, 3, [*COMPILED], ["padded", "roll", "strips"])
)
def test_compiled_steps_have_the_bits_of_uncompiled_ones(subject: Subject, form: str):
    sim = subject.simulation(form=form, compiled=True)
    sim.run(5)
    # The compiler's exponential has another last bit than torch's, which later steps enlarge.
    if subject.name.startswith("neural"):
        assert_near(sim.state, reference(subject, 5))
        return
    sim.run(35)  # enough for the padded form to launch its kernels by itself
    assert_same(sim.state, reference(subject, 40))


class ThroughWindows:
    """A handle that takes every neighbour from the window around a cell."""

    def __init__(self, handle: Neighbours, radius: int) -> None:
        parts = [handle.part(i) for i in range(len(handle))]
        self.windows = parts[0].windows
        self.rank = handle.rank
        self._radius = radius
        self._parts = parts
        self._seen = [None] * len(parts) if len(parts) > 1 else [parts[0].windows()]

    def part(self, component: int) -> "ThroughWindows":
        return ThroughWindows(self._parts[component], self._radius)

    def __len__(self) -> int:
        return len(self._parts)

    @property
    def here(self) -> Tensor:
        return self[(0,) * self.rank]

    def __getitem__(self, offset: int | tuple[int, ...]) -> Tensor:
        where = (offset,) if isinstance(offset, int) else offset
        if len(self) > 1:
            parts = [self.part(i)[where] for i in range(len(self))]
            return torch.stack(parts, -self.rank - 1)
        [windows] = self._seen
        assert windows is not None
        return windows[(..., *[self._radius + o for o in where])]


FORMS = {"roll": RollForm, "padded": PaddedForm}


@pytest.mark.parametrize(("subject", "form"), spread(1, 2, LOCAL, [*FORMS]))
def test_neighbours_taken_from_windows_are_the_same(subject: Subject, form: str):
    sim = subject.simulation()
    model = sim._setting.model

    def step(state: Any, inputs: Any, params: Any):
        fields, fixed = (
            {name: ThroughWindows(handle, model.radius) for name, handle in handles.items()}
            for handles in (state, inputs)
        )
        return model.step(fields, fixed, params)  # pyright: ignore[reportArgumentType]

    twin = copy.copy(model)
    twin.step = step
    sim._form = FORMS[form](replace(sim._setting, model=twin))
    sim.reset()
    sim.run(5)
    assert_same(sim.state, reference(subject, 5))


@every_model_and_form
def test_a_saved_run_goes_on_with_the_same_bits(subject: Subject, form: str, tmp_path: Path):
    first, second = subject.simulation(), subject.simulation(seed=8, form=form)
    first.run(10)
    second.run(1)
    second.load(first.save(tmp_path / "state"))
    assert second.step_count == 10
    assert_same(second.state, reference(subject, 10))
    second.run(10)
    assert_same(second.state, reference(subject, 20))


@every_model_and_form
def test_a_fork_and_its_origin_do_not_touch_each_other(subject: Subject, form: str):
    origin = subject.simulation(form=form)
    origin.run(10)
    twin = origin.fork()
    twin.run(10)
    assert_same(origin.state, reference(subject, 10))
    assert_same(twin.state, reference(subject, 20))
    origin.run(10)
    assert_same(origin.state, reference(subject, 20))


@every_model_and_form
def test_a_reset_goes_back_to_the_start(subject: Subject, form: str):
    sim = subject.simulation(form=form)
    sim.run(5)
    sim.reset()
    assert sim.step_count == 0
    assert_same(sim.state, reference(subject, 0))
    sim.run(10)
    assert_same(sim.state, reference(subject, 10))


@every_model_and_form
def test_a_batch_is_as_many_single_runs(subject: Subject, form: str):
    together = subject.simulation(batch=3, form=form)
    begin = together.state
    together.run(5)
    for run in range(3):
        alone = subject.simulation(state={name: x[run] for name, x in begin.items()})
        alone.run(5)
        found = {name: x[run] for name, x in together.state.items()}
        # Transforms of many runs at once may round differently.
        (assert_near if subject.name in PHASED else assert_same)(found, alone.state)


@enrolled(KEEPING)
def test_what_it_declares_conserved_is_conserved(subject: Subject):
    sim = subject.simulation(dtype=torch.float64)
    before = sim.observe()
    scale = 1 + sum(x.abs().sum().item() for x in sim.state.values())
    sim.run(25)
    after = sim.observe()
    for name in sim.model.conserved:
        assert after[name] == pytest.approx(before[name], rel=0, abs=1e-13 * scale), name


@enrolled(FLOATING)
def test_its_gradient_is_that_of_finite_differences(subject: Subject):
    """Along one random direction of the state and all parameters, through three steps."""
    sim = subject.simulation(dtype=torch.float64)
    sim.run(3)
    model, start, size = sim.model, sim.state, 1e-4
    generator = torch.Generator().manual_seed(0)
    random = {
        name: torch.randn(2, *x.shape, generator=generator, dtype=torch.float64)
        for name, x in start.items()
        if x.is_floating_point()
    }
    assert random

    def loss(along: Tensor) -> Tensor:
        state = {
            k: x + 0.01 * along * random[k][0] if k in random else x for k, x in start.items()
        }
        params = {k: value * (1 + 0.1 * along) for k, value in model.parameters.items()}
        later = rollout(model, state, 3, params)
        parts = [(x * r[1] + x**2).sum() for k, r in random.items() for x in [later[k]]]
        return torch.stack(parts).sum()

    at = torch.zeros((), dtype=torch.float64, requires_grad=True)
    [slope] = torch.autograd.grad(loss(at), at)
    with torch.no_grad():
        steps = torch.tensor([size, -size], dtype=torch.float64)
        ahead, back = loss(steps[0]), loss(steps[1])
    expected = ((ahead - back) / (2 * size)).item()
    assert expected != 0
    assert slope.item() == pytest.approx(expected, rel=1e-5, abs=1e-7)


@every_model
def test_its_observables_are_finite_numbers(subject: Subject):
    sim = subject.simulation(batch=2)
    sim.run(5)
    found = sim.observe()
    assert set(found) == set(sim.model.observables())
    assert set(sim.model.conserved) <= set(found)
    for name, values in found.items():
        assert len(values) == 2, name
        assert all(math.isfinite(value) for value in values), name


@every_model
def test_its_views_are_pictures_of_the_grid(subject: Subject):
    sim = subject.simulation()
    sim.run(5)
    views = sim.model.views()
    assert views
    assert not sim.model.picture or sim.model.picture in views
    for name in views:
        picture = sim.view(name)
        assert picture.shape == subject.size, name
        assert picture.isfinite().all(), name
    assert sim.view().shape == subject.size
