"""Steps that compute with whole fields run as fast as those that go by components."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from hotgrid.grid import Field, Input, Model, Parameter, Simulation
from hotgrid.grid.forms.kernel._planes import in_planes, without_stacks
from hotgrid.grid.forms.kernel._replay import _quicker
from hotgrid.grid.forms.kernel._tape import close, put_back, same_bits
from hotgrid.grid.forms.padded._padded import PaddedForm

U8, I32 = torch.uint8, torch.int32
MATRIX = torch.tensor([[0.5, 0.5, 0, 0], [0, 0.5, 0.5, 0], [0, 0, 0.5, 0.5], [0.5, 0, 0, 0.5]])
WEIGHTS = torch.tensor([4 / 9] + [1 / 9] * 4 + [1 / 36] * 4).view(9, 1, 1)


def around(u: Any) -> Tensor:
    return u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 4 * u[0, 0]


def blended(s, i, p):
    u = s["u"]
    return {"u": 0.5 * u.here + 0.4 * u[0, 1]}


def diffused(s, i, p):
    u = s["u"]
    return {"u": u.here + p["rate"] * around(u)}


def mixed(s, i, p):
    u, v = s["u"], s["v"]
    now = u.here + p["rate"] * around(u)
    return {"u": now * 0.99 + 0.01 * v.here, "v": v.here + 0.1 * (u.part(0)[0, 1] - v.here)}


def relaxed(s, i, p):
    u = s["u"].here
    return {"u": u + 0.6 * (WEIGHTS * u.sum(0) - u)}


def evened(s, i, p):
    u = s["u"][0, 1]
    return {"u": u + 0.3 * (u.mean(0, keepdim=True) - u)}


def normed(s, i, p):
    u = s["u"].here
    return {"u": u / ((u * u).sum(0).sqrt() + 0.5) + 0.01 * s["u"][0, 1]}


def chosen(s, i, p):
    u = s["u"]
    return {"u": torch.where(i["mask"].here > 0, u[0, 1], u[1, 0])}


def weighted(s, i, p):
    u = s["u"]
    return {"u": u.here + 0.1 * i["c"].here * around(u)}


def unpacked(s, i, p):
    a, b, c = s["u"].here
    x, y, z = s["u"][0, 1]
    return {"u": torch.stack([a - 0.1 * (y - b), b * 0.9 + 0.1 * a, c + 0.1 * (z - x)])}


def written(s, i, p):
    u = s["u"]
    new = torch.empty_like(u.here)
    new[0] = u.part(0)[0, 1]
    new[1:] = u[1, 0][1:] * 0.5
    new[2] += 1
    new[new > 1.25] = 0.5
    return {"u": new}


def turned(s, i, p):
    u = s["u"].here
    return {"u": u[[2, 3, 0, 1]] * 0.5 + 0.25 * u.flip(0) + 0.25 * u.roll(1, 0)}


def multiplied(s, i, p):
    return {"u": torch.einsum("ij,j...->i...", MATRIX, s["u"][0, 1])}


def of_parameters(s, i, p):
    both = torch.stack([p["rate"], 2 * p["rate"]]).view(2, 1, 1)
    return {"u": s["u"].here * both + torch.cat([s["u"][0, 1][1:], s["u"][1, 0][:1]])}


def constant(s, i, p):
    return {"u": torch.zeros_like(s["u"].here), "v": p["rate"]}


def counted(s, i, p):
    a, n = s["u"], s["n"]
    return {"u": a.here + 0.1 * around(a), "n": (n.here + n[0, 1]) % 3}


def compared(s, i, p):
    now = s["u"].here + 0.1 * around(s["u"])
    return {"u": now, "n": ((now > 0.5).any(0) | (s["n"][0, 1] > 1)).to(U8)}


def lived(s, i, p):
    n = s["n"]
    seen = n.windows().sum((-1, -2)) - n.here
    return {"n": ((seen == 3) | ((n.here == 1) & (seen == 2))).to(U8)}


def whole_numbers(s, i, p):
    return {"n": (s["n"].here * 3 - s["n"][0, 1]) % 7}


def along(s, i, p):
    u = s["u"]
    return {"u": u.here + 0.1 * (u[-1] + u[1] - 2 * u[0])}


def in_space(s, i, p):
    u = s["u"]
    return {"u": u.here + 0.1 * (u[-1, 0, 0] + u[0, 0, 1] - 2 * u[0, 0, 0])}


def averaged(s, i, p):
    return {"u": s["u"].windows().mean((-1, -2))}


def shared_out(s, i, p):
    return {"u": torch.softmax(s["u"][0, 1], 0)}


def saturated(s, i, p):
    return {"u": torch.tanh(s["u"].here + 0.1 * around(s["u"])) + torch.exp(-s["u"][0, 1])}


@dataclass
class Case:
    """A step, what it declares, and how it is run."""

    step: Callable[..., dict[str, Tensor]]
    fields: Sequence[Field]
    inputs: Sequence[Input] = ()
    size: tuple[int, ...] = (20, 30)
    options: dict[str, Any] | None = None
    exact: bool = True

    def simulation(self, **options: Any) -> Simulation:
        case = self

        class Rule(Model):
            fields = tuple(case.fields)
            inputs = tuple(case.inputs)
            ranks = (1, 2, 3)
            rate = Parameter(0.1)

            def step(self, state, inputs, params):
                return case.step(state, inputs, params)

        draw = torch.Generator().manual_seed(5)

        def drawn(kind: Field | Input) -> Tensor:
            many = () if kind.components == 1 else (kind.components,)
            lead = batch if isinstance(kind, Field) else ()
            x = torch.rand(*lead, *many, *self.size, generator=draw)
            return (x * 3).to(kind.dtype) if kind.dtype else x

        given = {**(self.options or {}), **options}
        batch = (given["batch"],) if "batch" in given else ()
        return Simulation(
            Rule(),
            size=self.size,
            state={field.name: drawn(field) for field in self.fields},
            inputs={known.name: drawn(known) for known in self.inputs},
            device="cpu",
            **given,
        )


def u(components: int) -> tuple[Field, ...]:
    return (Field("u", components),)


CASES = [
    Case(blended, u(2)),
    Case(blended, u(9)),
    Case(diffused, u(1)),
    Case(diffused, u(2), options={"storage": torch.float16}),
    Case(diffused, u(3), options={"storage": torch.bfloat16}),
    Case(diffused, u(4), options={"dtype": torch.float64}),
    Case(diffused, u(2), options={"batch": 3}),
    Case(mixed, (Field("u", 3), Field("v"))),
    Case(relaxed, u(9), exact=False),
    Case(evened, u(4)),
    Case(normed, u(2)),
    Case(chosen, u(2), (Input("mask", dtype=U8),)),
    Case(weighted, u(2), (Input("c", 2),)),
    Case(unpacked, u(3)),
    Case(written, u(3)),
    Case(turned, u(4)),
    Case(multiplied, u(4), exact=False),
    Case(of_parameters, u(2)),
    Case(constant, (Field("u", 2), Field("v"))),
    Case(counted, (Field("u"), Field("n", dtype=U8))),
    Case(counted, (Field("u", 2), Field("n", 2, dtype=U8))),
    Case(compared, (Field("u", 2), Field("n", dtype=U8))),
    Case(lived, (Field("n", dtype=U8),)),
    Case(whole_numbers, (Field("n", 2, dtype=I32),)),
    Case(along, u(2), size=(300,)),
    Case(in_space, u(3), size=(6, 7, 8)),
    Case(averaged, u(1), exact=False),
    Case(shared_out, u(3), exact=False),
    Case(saturated, u(2), exact=False),
]


def named(case: Case) -> str:
    numbers = "+".join(str(field.components) for field in case.fields)
    return f"{case.step.__name__} {numbers} {' '.join(map(str, (case.options or {}).values()))}"


def piece_of(case: Case) -> tuple[Callable[..., object], tuple[Any, ...]]:
    """A step of one piece, uncompiled, and what it is called with."""
    form = case.simulation(compiled=True, form="padded")._form
    assert isinstance(form, PaddedForm)
    form._refresh()
    step = form._stepping(replace(form.setting, compiled=False), form._piece)
    return step.call, (step.lines[0], step.outs[1], step.fixed, step.params)


def _without_ones(shape: Sequence[int]) -> tuple[int, ...]:
    return tuple(n for n in shape if n != 1)


class Shapes(TorchDispatchMode):
    """The shapes of all that is computed; what is only looked at, or copied, is not."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[tuple[int, ...]] = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        copies = func in (torch.ops.aten._to_copy.default, torch.ops.aten.copy_.default)
        if isinstance(result, Tensor) and not result._is_view() and not copies:
            self.seen.add(_without_ones(result.shape))
        return result


@pytest.mark.parametrize("case", CASES, ids=named)
def test_a_step_in_planes_has_one_shape_and_makes_the_same(case: Case):
    plain, args = piece_of(case)
    outs = [x for part in args[1] for views in part for x in views]
    with put_back(outs), torch.no_grad():
        call = in_planes(plain, *args)
        assert call is not None
        plain(*args)
        wanted = [out.clone() for out in outs]
        for out in outs:
            out.fill_(1)
        with Shapes() as shapes:
            call(*args)
        same = same_bits if case.exact else close
        assert all(map(same, outs, wanted))
    # Inductor fuses into one kernel what has one shape.
    assert shapes.seen - {()} == {_without_ones(outs[0].shape)}


@pytest.mark.parametrize("case", CASES, ids=named)
def test_a_step_that_stacks_is_taken_apart_without_computing_it(case: Case):
    plain, args = piece_of(case)
    outs = [x for part in args[1] for views in part for x in views]
    with put_back(outs), torch.no_grad():
        before = [out.clone() for out in outs]
        call = without_stacks(plain, *args)
        assert all(map(torch.equal, outs, before))
        if call is None:
            return
        plain(*args)
        wanted = [out.clone() for out in outs]
        call(*args)
        same = same_bits if case.exact else close
        assert all(map(same, outs, wanted))


def test_what_stacks_nothing_is_left_as_it_is():
    plain, args = piece_of(Case(lambda s, i, p: {"u": s["u"][0, 1] * 2}, u(1)))
    assert without_stacks(plain, *args) is None


@pytest.mark.parametrize(
    "make",
    [
        torch.rand_like,
        lambda x: x.sort(0).values,
        lambda x: x * x.sum(),
        lambda x: x.add_(1),
        lambda x: x.cumsum(-1),
    ],
    ids=["random", "sorted", "over all cells", "written into the field", "along cells"],
)
def test_what_cannot_be_done_in_planes_is_left_as_it_is(make: Callable[[Tensor], Tensor]):
    plain, args = piece_of(Case(lambda s, i, p: {"u": make(s["u"].part(0).here)}, u(1)))
    outs = [x for part in args[1] for views in part for x in views]
    with put_back([*args[0], *outs]), torch.no_grad():
        assert in_planes(plain, *args) is None


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32])
def test_remainders_are_exact(dtype: torch.dtype):
    remainder, most = torch.ops.aten.remainder.Scalar, torch.iinfo(dtype)
    ends = [most.min, most.min + 1, most.max - 1, most.max]
    x = torch.randint(most.min, most.max, (4096,), generator=torch.Generator().manual_seed(1))
    x = torch.cat([x, torch.arange(-128, 128), torch.tensor(ends)]).to(dtype)
    for n in [*range(1, 128), most.max // 2, most.max - 1, most.max]:
        quicker = _quicker(remainder, (x, n), dtype)
        assert quicker is not remainder
        assert torch.equal(quicker(x, n), x % n)


@pytest.mark.compiles
@pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")
@pytest.mark.parametrize(
    "case",
    [
        Case(mixed, (Field("u", 3), Field("v")), options={"storage": torch.float16}),
        Case(weighted, u(2), (Input("c", 2),)),
        Case(written, u(3)),
        Case(counted, (Field("u", 2), Field("n", 2, dtype=U8))),
        Case(lived, (Field("n", dtype=U8),), options={"batch": 2}),
    ],
    ids=named,
)
def test_whole_fields_are_swept_and_give_the_same_bits(case: Case):
    sims = [case.simulation(compiled=compiled) for compiled in (True, False)]
    for sim in sims:
        sim.run(7, progress=False)
    form = sims[0]._form
    assert isinstance(form, PaddedForm)
    assert form.swept
    for name, x in sims[0].state.items():
        assert torch.equal(x, sims[1].state[name])
