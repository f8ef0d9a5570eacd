"""Steps that are not local are refused by name before they run; local ones are not."""

import copy
import functools
import re
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import torch.nn.functional as functional

from hotgrid.errors import ArgumentError
from hotgrid.grid import Field, Input, Model, Parameter, Simulation

WEIGHT = torch.full((1, 1, 3, 3), 0.1)


class Trial(Model):
    """One field or several, and a step that is given as a function."""

    rate = Parameter(0.5)
    inputs = (Input("w"),)
    calls = 0

    def __init__(self, function, components=1, dtype=None):
        super().__init__()
        self.fields = (Field("u", components=components, dtype=dtype),)
        self.function = function
        self.n = 0
        self.seen = []
        self.array = np.zeros(1)
        self.nested = SimpleNamespace(n=0)
        self.tensors = [torch.zeros(1)]

    def initial(self, size, generator):
        components = self.fields[0].components
        shape = (components, *size) if components > 1 else size
        u = torch.rand(shape, generator=generator) * 8
        return {"u": u.to(self.fields[0].dtype or torch.float32)}

    def static(self, size):
        return {"w": torch.ones(size)}

    def step(self, state, inputs, params):
        return {"u": self.function(state["u"], inputs["w"], params, self)}


def simulation(function, components=1, dtype=None, **options):
    options = {"size": (12, 20), "device": "cpu", "compiled": False, **options}
    return Simulation(Trial(function, components, dtype), **options)


def wall(u, w, p, m):
    x = u.here.clone()
    x[..., 0] = 0
    return x


def in_place(u, w, p, m):
    x = u.here
    x += 1
    return x


def counting(u, w, p, m):
    m.n += 1
    return u.here + m.n


def remembering(u, w, p, m):
    m.seen.append(1)
    return u.here


def scaled(u, w, p, m):
    p["rate"].mul_(2)
    return u.here


def replaced(u, w, p, m):
    p["rate"] = 0.1
    return u.here * p["rate"]


def branching(u, w, p, m):
    return u.here if u.here.max() > 0 else -u.here


def reinterpreted(u, w, p, m):
    x = u.here
    return x.reshape(x.shape[::-1]).T


def class_counting(u, w, p, m):
    type(m).calls += 1
    return u.here + 1e-6 * type(m).calls


def array_counting(u, w, p, m):
    m.array += 1
    return u.here


def nested_counting(u, w, p, m):
    m.nested.n += 1
    return u.here + (1 if m.nested.n > 20 else 0)


def tensor_counting(u, w, p, m):
    m.tensors[0].add_(1)
    return u.here


def small_shape(u, w, p, m):
    return u.here + torch.tensor(1.0 / u.here.shape[-1]) ** 2 * 1e-2 * (u[0, 1] - u.here)


def source_by_mask(u, w, p, m):
    x = u.here.clone()
    hot = torch.zeros(x.shape, dtype=torch.bool)
    hot[..., x.shape[-2] // 2, x.shape[-1] // 2] = True
    x[hot] = 1.0
    return x


def source_by_flat_mask(u, w, p, m):
    x = u.here.clone()
    hot = torch.zeros(x.numel(), dtype=torch.bool)
    hot[0] = True
    x[hot.view(x.shape)] = 1.0
    return x


def source(u):
    x = torch.zeros(u.here.shape)
    x[..., 0, 0] = 50.0
    return x


def source_in_place(u, w, p, m):
    return source(u).add_(u.here)


def corner_before_cells(u, w, p, m):
    x = torch.zeros(u.here.shape)
    corner = x[..., :1, :1]
    x.copy_(u.here)
    corner.fill_(50.0)
    return x


def cell_by_number(u, w, p, m):
    x = torch.zeros(u.here.shape)
    x[5, 5] = 1.0
    return u.here + x


def wall_by_numpy(u, w, p, m):
    u.here.numpy()[..., 0] = 0
    return u.here


NOT_LOCAL = {
    "source by mask": source_by_mask,
    "source by flat mask": source_by_flat_mask,
    "source stacked": lambda u, w, p, m: torch.stack([u.here, source(u)]).amax(0),
    "source in a cat": lambda u, w, p, m: torch.cat([u.here[None], source(u)[None]]).sum(0),
    "source in place": source_in_place,
    "ramp stacked": lambda u, w, p, m: torch.stack([u.here, torch.linspace(
        0, 1e-4, u.here.shape[-1]).expand(u.here.shape)]).sum(0),
    "corner taken before cells": corner_before_cells,
    "cell by number": cell_by_number,
    "wall by numpy": wall_by_numpy,
    "shape in full_like": lambda u, w, p, m: (
        u.here + torch.full_like(u.here, 0.1 / u.here.shape[-1] ** 2) * u[0, 1]),
    "shape in full": lambda u, w, p, m: (
        u.here + torch.full(u.here.shape, 1e-6 / u.here.shape[-1]) * u[0, 1]),
    "divided by the shape": lambda u, w, p, m: u.here + 1e-6 * (u.here // u.here.shape[-1]),
    "is in": lambda u, w, p, m: torch.isin(u.here, u[0, 1]).float(),
    "buckets": lambda u, w, p, m: torch.bucketize(u.here, u.here.flatten()).float(),
    "random number": lambda u, w, p, m: u.here + 1e-4 * torch.rand(()),
    "shape in a small tensor": small_shape,
    "counter of the class": class_counting,
    "counter in an array": array_counting,
    "counter in an object": nested_counting,
    "counter in a list of tensors": tensor_counting,
    "mean": lambda u, w, p, m: u.here - u.here.mean(),
    "mean of a dim": lambda u, w, p, m: u.here - u.here.mean(0),
    "mean, kept": lambda u, w, p, m: u.here - u.here.mean(-1, keepdim=True),
    "sum": lambda u, w, p, m: u.here / u.here.sum(),
    "max": lambda u, w, p, m: u.here / u.here.max(),
    "amax": lambda u, w, p, m: u.here / u.here.amax((0, 1)),
    "norm": lambda u, w, p, m: u.here / torch.linalg.vector_norm(u.here),
    "any": lambda u, w, p, m: u.here * (u.here > 7).any(),
    "var": lambda u, w, p, m: u.here * u.here.var(),
    "cumsum": lambda u, w, p, m: u.here.cumsum(0),
    "cumprod": lambda u, w, p, m: u.here.cumprod(-1),
    "roll": lambda u, w, p, m: torch.roll(u.here, 1, 0),
    "flip": lambda u, w, p, m: u.here.flip(0),
    "sort": lambda u, w, p, m: u.here.sort(0).values,
    "argsort": lambda u, w, p, m: u.here.argsort(-1).float(),
    "softmax": lambda u, w, p, m: u.here.softmax(-1),
    "diff": lambda u, w, p, m: torch.diff(u.here, prepend=u.here[..., :1], dim=-1),
    "conv2d": lambda u, w, p, m: functional.conv2d(u.here[None, None], WEIGHT, padding=1)[0, 0],
    "pad": lambda u, w, p, m: functional.pad(u.here, (1, 0))[..., :-1],
    "unfold": lambda u, w, p, m: u.here * u.here.unfold(0, 2, 1).sum(),
    "matmul": lambda u, w, p, m: u.here @ u.here.T @ u.here,
    "fft": lambda u, w, p, m: torch.fft.fft2(u.here).real,
    "wall by index": wall,
    "arange": lambda u, w, p, m: u.here + torch.arange(u.here.shape[-1]),
    "linspace": lambda u, w, p, m: u.here * torch.linspace(0, 1, u.here.shape[-1]),
    "eye": lambda u, w, p, m: u.here * torch.eye(*u.here.shape),
    "numel": lambda u, w, p, m: u.here / u.here.numel(),
    "shape": lambda u, w, p, m: u.here * u.here.shape[-1],
    "shape in a tensor": lambda u, w, p, m: u.here * torch.tensor(u.here.shape[-1]),
    "first cell": lambda u, w, p, m: u.here + u.here.flatten()[0],
    "row": lambda u, w, p, m: u.here + u.here[0],
    "picked": lambda u, w, p, m: u.here[torch.randperm(len(u.here))],
    "gather": lambda u, w, p, m: u.here.gather(0, torch.zeros_like(u.here).long()),
    "transposed": lambda u, w, p, m: u.here + u.here.T,
    "outer": lambda u, w, p, m: (u.here[:, None] * u.here[None]).sum(0),
    "reinterpreted": reinterpreted,
    "random": lambda u, w, p, m: u.here + torch.rand_like(u.here),
    "dropout": lambda u, w, p, m: functional.dropout(u.here),
    "nonzero": lambda u, w, p, m: u.here * len(u.here.nonzero()),
    "host read": lambda u, w, p, m: u.here * float(u.here.sum()),
    "host read of a list": lambda u, w, p, m: (
        u.here * (2 if max(u.here.flatten().tolist()) > 100 else 1)),
    "host read of an array": lambda u, w, p, m: (
        u.here * (2 if u.here.numpy().max() > 100 else 1)),
    "host read by NumPy": lambda u, w, p, m: u.here * (2 if 100 in np.asarray(u.here) else 1),
    "host read of a text": lambda u, w, p, m: u.here * (2 if "nan" in str(u.here) else 1),
    "host read of a parameter": lambda u, w, p, m: u.here * p["rate"].item(),
    "branch": branching,
    "in place": in_place,
    "in place on an input": lambda u, w, p, m: u.here + w.here.mul_(2),
    "in place on a parameter": scaled,
    "parameter replaced": replaced,
    "counter": counting,
    "list": remembering,
    "global state": lambda u, w, p, m, calls=[]: u.here * (calls.append(1) or len(calls)),
}  # fmt: skip


@pytest.mark.parametrize("title", NOT_LOCAL)
@pytest.mark.parametrize("options", [{}, {"batch": 2}], ids=["alone", "batch"])
def test_a_step_that_is_not_local_is_refused(title, options):
    with pytest.raises(ArgumentError, match="step"):
        simulation(NOT_LOCAL[title], **options).run(1)


def tabled(u, w, p, m):
    return torch.tensor([2, 0, 1, 3, 3, 1, 0, 2])[u.here.long()]


def masked(u, w, p, m):
    x = u[0, 1].clone()
    x[x > 3] = 0
    return x


def own_temporary(u, w, p, m):
    x = u.here * 2
    x += u[0, 1]
    x.clamp_(0, 1)
    return x.mul_(p["rate"])


def new_tensors(u, w, p, m):
    x = u.here
    return (
        torch.zeros(x.shape) + torch.full_like(x, 2) + x.new_ones(x.shape) + torch.tensor(1.0)
    )


def filled(u, w, p, m):
    x = torch.empty(u.here.shape)
    x[1:] = u[0, 1][1:]
    x[0] = p["rate"]
    x[x > 3] = 0.5
    x[:2] += 1
    return x


def flagged(u, w, p, m):
    x = torch.zeros(u.here.shape)
    x[u.here > 3] = 2.0
    return torch.add(x, u[0, 1], out=torch.empty(u.here.shape))


LOCAL = {
    "memory filled with cells": (4, filled),
    "constants flagged by cells": (1, flagged),
    "many constants": (16, lambda u, w, p, m: (
        u.here * torch.arange(256.0).view(16, 16).mean(1).view(16, 1, 1)
        + torch.arange(160.0).view(16, 10, 1, 1).amax(1))),
    "neighbours": (1, lambda u, w, p, m: u[0, 1] - u[1, 0] + w[0, -1] * p["rate"]),
    "five stacked": (1, lambda u, w, p, m: torch.stack(
        [u[0, 0], u[0, 1], u[1, 0], u[0, -1], u[-1, 0]]).median(0).values),
    "nine sorted": (1, lambda u, w, p, m: u.windows().flatten(-2).sort(-1).values[..., 4]),
    "window sum": (1, lambda u, w, p, m: u.windows().sum((-2, -1))),
    "weighted window": (1, lambda u, w, p, m: torch.einsum(
        "...ij,ij->...", u.windows(), torch.ones(3, 3))),
    "own temporary": (1, own_temporary),
    "new tensors": (1, new_tensors),
    "masked": (1, masked),
    "constant": (1, lambda u, w, p, m: torch.tensor(3.0)),
    "functions": (1, lambda u, w, p, m: torch.exp(-u.here) + torch.sin(u[0, 1]).pow(2)),
    "sum of components": (4, lambda u, w, p, m: u.here - u.here.sum(0)),
    "sum of components from behind": (4, lambda u, w, p, m: u.here - u.here.sum(-3)),
    "softmax of components": (4, lambda u, w, p, m: u.here.softmax(0)),
    "components mixed": (4, lambda u, w, p, m: torch.einsum(
        "ij,jyx->iyx", torch.arange(16.0).view(4, 4) / 20, u.here)),
    "components in a product": (4, lambda u, w, p, m: (
        torch.arange(16.0).view(4, 4) / 20 @ u.here.flatten(1)).view(u.here.shape)),
    "components turned round": (4, lambda u, w, p, m: u.here.flip(0)),
    "components reordered": (4, lambda u, w, p, m: u.here[[2, 0, 1, 3]]),
    "components apart": (4, lambda u, w, p, m: torch.cat([u.here[:2] * 2, u.here[2:]])),
    "components weighted": (4, lambda u, w, p, m: (
        u.here * torch.tensor([1.0, 2, 3, 4]).view(4, 1, 1))),
    "components in a list": (4, lambda u, w, p, m: [u.part(k)[0, 1] for k in range(4)]),
    "as many as a side of the trial": (1, lambda u, w, p, m: torch.stack(
        [u[0, 0]] * 29 + [u[0, 1]] * 29).mean(0)),
    "buckets of constants": (1, lambda u, w, p, m: (
        torch.bucketize(u.here.contiguous(), torch.tensor([0.1, 0.5, 0.9])).float())),
    "one of some": (1, lambda u, w, p, m: (
        torch.isin(u.here.round(), torch.tensor([2.0, 3])).float())),
    "taken from a table": (1, lambda u, w, p, m: (
        torch.arange(9.0).take(u.here.clamp(0, 8).long()))),
    "many components": (58, lambda u, w, p, m: u.here.mean(0, keepdim=True) + u.here),
}  # fmt: skip


@pytest.mark.parametrize("title", LOCAL)
def test_a_local_step_runs_the_same_in_every_form_and_batch(title):
    components, function = LOCAL[title]
    plain = simulation(function, components, form="roll")
    start = plain.state["u"]
    plain.run(2)
    padded = simulation(function, components, form="padded", state={"u": start})
    padded.run(2)
    torch.testing.assert_close(padded.state["u"], plain.state["u"], rtol=1e-6, atol=1e-6)
    for form in ("roll", "padded"):
        other = start.flip(-1)
        both = simulation(
            function, components, form=form, batch=2, state={"u": torch.stack([start, other])}
        )
        both.run(2)
        single = simulation(function, components, form=form, state={"u": other})
        single.run(2)
        found = both.state["u"]
        torch.testing.assert_close(found[0], plain.state["u"], rtol=1e-6, atol=1e-6)
        torch.testing.assert_close(found[1], single.state["u"], rtol=1e-6, atol=1e-6)


def test_a_table_may_be_looked_up_by_what_a_cell_holds():
    sim = simulation(tabled, dtype=torch.uint8)
    before = sim.state["u"]
    sim.run(1)
    assert torch.equal(sim.state["u"], tabled_plainly(before))


def tabled_plainly(u):
    return torch.tensor([2, 0, 1, 3, 3, 1, 0, 2])[u.long()].to(torch.uint8)


def test_the_error_names_operation_line_and_remedy():
    with pytest.raises(ArgumentError) as told:
        simulation(wall).run(1)
    text = str(told.value)
    assert "`Trial.step`" in text
    assert "`select`" in text or "`slice`" in text
    assert re.search(r"line \d+ of test_step_check.py \(`x\[\.\.\., 0\] = 0`\)", text)
    assert "`Input`" in text


class Sparse(Model):
    fields = (Field("u", dtype=torch.uint8),)

    def step(self, state, inputs, params):
        u = state["u"].here
        return {"u": u.t().reshape(u.shape) | u}


@pytest.mark.parametrize("alive", [0, 1])
def test_a_sparse_start_does_not_hide_that_cells_are_reordered(alive):
    start = torch.zeros(16, 16, dtype=torch.uint8)
    start[3, 5] = alive
    with pytest.raises(ArgumentError, match="not local"):
        Simulation(Sparse(), (16, 16), {"u": start}, device="cpu", compiled=False).run(1)


def test_a_model_is_checked_again_when_it_was_changed():
    model = Trial(lambda u, w, p, m: u.here)
    Simulation(model, size=(8, 8), device="cpu", compiled=False).run(1)
    model.function = NOT_LOCAL["mean"]
    with pytest.raises(ArgumentError, match="`mean`"):
        Simulation(model, size=(8, 8), device="cpu", compiled=False).run(1)


def test_a_model_may_be_a_dataclass():
    @dataclass
    class Scaled(Model):
        factor: float = 0.5
        fields = (Field("u"),)

        def step(self, state, inputs, params):
            return {"u": self.factor * state["u"].here}

    Simulation(Scaled(), size=(4, 4), device="cpu", compiled=False).run(1)


def test_what_a_counter_changes_is_named():
    with pytest.raises(ArgumentError, match=r"changes `self\.n`"):
        simulation(counting).run(1)


def test_writing_into_what_was_given_is_named():
    with pytest.raises(ArgumentError, match=r"writes into a tensor that it was given.*x \+ 1"):
        simulation(in_place).step()


def test_the_size_of_a_tensor_is_named():
    with pytest.raises(ArgumentError, match=r"depends on the shape.*numel"):
        simulation(NOT_LOCAL["numel"]).run(1)


def test_a_model_is_checked_once():
    model = Trial(lambda u, w, p, m: u.here)
    calls = []
    model.function = lambda u, w, p, m: calls.append(1) or u.here
    for _ in range(3):
        Simulation(model, size=(8, 8), device="cpu", compiled=False).run(0)
        Simulation(model, size=(8, 8), device="cpu", compiled=False).run(2)
    assert len(calls) == 3 + 3 * 2  # the trials, and the steps


class Held(Model):
    """A model whose step does what it holds."""

    fields = (Field("u"),)
    rate = Parameter(0.5)

    def __init__(self, held, rate=0.5):
        super().__init__(rate=rate)
        self._held = held

    def step(self, state, inputs, params):
        CALLS.append(1)
        return {"u": state["u"].here}


CALLS: list[int] = []


def trial_steps(model: Model) -> int:
    """How often a simulation of one step calls the step of its model but for that one."""
    CALLS.clear()
    Simulation(model, size=(8, 8), device="cpu", compiled=False).run(1)
    return len(CALLS) - 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 2),
        (1, 1.0),
        ("a", "b"),
        (torch.zeros(2), torch.ones(2)),
        (torch.zeros(2), torch.zeros(2, 1)),
        (torch.zeros(2), torch.zeros(2).double()),
        ([1, 2], (1, 2)),
        ({"a": 1}, {"a": 2}),
        (frozenset({1, 2}), frozenset({1, 3})),
        (SimpleNamespace(n=1), SimpleNamespace(n=2)),
        (wall, in_place),
    ],
)
def test_a_model_that_holds_the_same_is_not_tried_again(one, other):
    class Other(Held):
        pass

    assert trial_steps(Other(one)) == 3
    assert trial_steps(Other(copy.deepcopy(one))) == 0
    assert trial_steps(Other(other)) == 3
    assert trial_steps(Other(one, rate=0.25)) == 3


RING: list[object] = []
RING.append(RING)


@pytest.mark.parametrize(
    "unknown", [np.zeros(1), torch.zeros(1 << 20), functools.partial(wall), object(), RING]
)
def test_a_model_that_holds_something_unknown_is_tried_by_itself(unknown):
    assert trial_steps(Held(unknown)) == 3
    assert trial_steps(Held(unknown)) == 3


def test_a_lookup_kept_on_the_model_may_be_made_by_the_first_step():
    from functools import cached_property

    class Lazy(Model):
        fields = (Field("u"),)

        @cached_property
        def factor(self):
            return 2.0

        def step(self, state, inputs, params):
            return {"u": self.factor * state["u"].here}

    Simulation(Lazy(), size=(4, 4), device="cpu", compiled=False).run(1)


class Wrong(Model):
    fields = (Field("u"), Field("k", dtype=torch.uint8))

    def __init__(self, result):
        super().__init__()
        self.result = result

    def step(self, state, inputs, params):
        return {"u": state["u"].here, "k": state["k"].here, **self.result(state)}


@pytest.mark.parametrize(
    ("result", "said"),
    [
        (lambda s: {"v": s["u"].here}, "returned `v`, which is not one of its fields"),
        (lambda s: {"u": s["u"]}, r"returned a handle.*state\['u'\]\.here"),
        (
            lambda s: {"k": s["u"].here - 3.5},
            r"float32 for the field `k`, which is torch.u",
        ),
    ],
    ids=["extra", "handle", "floats"],
)
def test_what_a_step_returns_is_what_its_fields_are(result, said):
    with pytest.raises(ArgumentError, match=said):
        Simulation(Wrong(result), size=(4, 4), device="cpu", compiled=False).run(1)
