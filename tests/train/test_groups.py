"""Groups: disjoint, complete, by path; values fixed, named, scheduled or functions."""

import copy
import json
import math
from pathlib import Path

import pytest
import torch
from hypothesis import given, strategies as st

from hotgrid.errors import ArgumentError
from hotgrid.nn import initialize, query
from hotgrid.train import SGD, AdamW, Lion, Muon, Warmup, groups

from ..cluster.forked_ranks import run_worker  # noqa: TID252  tests are not a package
from .sharded_worker import RULES, Gpt, specs, train, values

WORKER = Path(__file__).with_name("sharded_worker.py")
MATRICES = "Gpt/*[@name='h']//Param[@rank=2]"


def test_every_parameter_is_in_one_group():
    model = Gpt()
    found = groups(model, specs(), rest=AdamW(rate=0.1)).parameters()
    paths = [path for group in found.values() for path in group]
    assert sorted(paths) == sorted(name for name, _ in model.named_parameters())
    blocks = {f"h.{i}.{n}.weight" for i in (0, 1) for n in ("fc", "proj")}
    assert found["matrices"].keys() == {*blocks, "mix.weight"}
    assert all(p is model.get_parameter(path) for g in found.values() for path, p in g.items())


@given(st.data())
def test_random_groups_are_disjoint_and_complete_or_refused(data):
    model = Gpt()
    paths = [name for name, _ in model.named_parameters()]
    chosen = data.draw(st.lists(st.sets(st.sampled_from(paths), min_size=1), max_size=3))
    wanted = {
        " | ".join(f"//Param[@path='{path}']" for path in sorted(each)): SGD(
            rate=0.1, name=str(number)
        )
        for number, each in enumerate(map(set, {frozenset(each) for each in chosen}))
    }
    together = [path for each in {frozenset(each) for each in chosen} for path in each]
    if len(together) == len(set(together)) == len(paths):
        found = groups(model, wanted).parameters()
        assert sorted(p for group in found.values() for p in group) == sorted(paths)
        return
    with pytest.raises(ArgumentError) as refused:
        groups(model, wanted)
    twice = {path for path in together if together.count(path) > 1}
    wrong = twice or set(paths) - set(together)
    named = {path for path in wrong if f"`{path}`" in str(refused.value)}
    assert len(named) == min(12, len(wrong))
    assert named == wrong or f"and {len(wrong) - 12} more" in str(refused.value)


def test_an_overlap_names_parameters_and_selectors():
    with pytest.raises(ArgumentError) as refused:
        groups(Gpt(), {MATRICES: Muon(rate=0.1), "//Linear": AdamW(rate=0.1)}, rest="frozen")
    assert f"`h.0.fc.weight` is in `{MATRICES}` and `//Linear`" in str(refused.value)
    assert "wte.weight" not in str(refused.value)


def test_what_is_left_over_is_named():
    with pytest.raises(ArgumentError, match=r"`wte.weight`.* are in none; .*`rest=`"):
        groups(Gpt(), {MATRICES: Muon(rate=0.1)})


def test_a_selector_that_selects_nothing_is_an_error():
    with pytest.raises(ArgumentError, match="Lineer"):
        groups(Gpt(), {"//Lineer": Muon(rate=0.1)}, rest="frozen")


def test_a_query_selects_as_its_text_does():
    built = query("Gpt").named("h").descendants("Param").where(rank=2)
    text = groups(Gpt(), {MATRICES: Muon(rate=0.1, name="m")}, rest="frozen")
    fluent = groups(Gpt(), {built: Muon(rate=0.1, name="m")}, rest="frozen")
    assert fluent.parameters()["m"].keys() == text.parameters()["m"].keys()


def test_a_shared_parameter_is_in_one_group():
    tied = Gpt()
    tied.head.weight = tied.wte.weight
    with pytest.raises(ArgumentError, match=r"`wte\.weight` is in"):
        groups(tied, {"//*[@name='wte']": SGD(rate=0.1), "//*[@name='head']": SGD(rate=0.2)},
               rest="frozen")  # fmt: skip
    found = groups(tied, {"//*[@name='head']": SGD(rate=0.1, name="head")}, rest="frozen")
    assert list(found.parameters()["head"]) == ["wte.weight", "head.bias"]


def test_muon_refuses_vectors_by_path():
    with pytest.raises(ArgumentError, match=r"`h.0.fc.bias` has the shape \(16,\)"):
        groups(Gpt(), {}, rest=Muon(rate=0.1))


def test_a_group_that_would_train_nothing_is_an_error():
    model = Gpt().requires_grad_(False)
    with pytest.raises(ArgumentError, match=r"`rest` would train nothing.*wte.weight"):
        groups(model, {}, rest=AdamW(rate=0.1))


def test_frozen_parameters_need_no_gradient():
    model = Gpt()
    groups(model, {"//*[@name='h']": "frozen"}, rest=AdamW(rate=0.1))
    asleep = {name for name, p in model.named_parameters() if not p.requires_grad}
    assert asleep == {name for name, _ in model.named_parameters() if name.startswith("h.")}


@pytest.mark.parametrize("spec", ["frosen", None, AdamW, 0.1])
def test_what_is_no_spec_is_refused(spec):
    with pytest.raises(ArgumentError, match=r"`//Linear` is .*expected an optimizer"):
        groups(Gpt(), {"//Linear": spec}, rest="frozen")


def test_names_are_unique():
    wanted = {
        "//*[@name='wte']": SGD(rate=0.1, name="x"),
        "//*[@name='head']": SGD(rate=0.1, name="x"),
    }
    with pytest.raises(ArgumentError, match="two groups are called 'x'"):
        groups(Gpt(), wanted, rest="frozen")


# ---- values


def test_values_are_fixed_named_scheduled_or_functions():
    optimizer = groups(
        Gpt(),
        {
            "//*[@name='wte']": SGD(
                rate=0.5, momentum=lambda step: 0.9 - step / 100, name="fixed"
            ),
            "//*[@name='head']": AdamW(
                rate="head", decay="decay", betas=(Warmup(10, 0.9), 0.95), name="named"
            ),
        },
        rest=Lion(rate=0.1 * Warmup(10), clip=lambda step: 1.0 + step, name="scheduled"),
        rates={"head": lambda step: 2.0**-step, "decay": 0.25},
    )
    for step in (3, 0, 3, 20):
        optimizer.apply(step)
        assert optimizer.rates() == {
            "fixed": 0.5,
            "named": 2.0**-step,
            "scheduled": pytest.approx(0.1 * min(1, (step + 1) / 10)),
        }
        found = optimizer.values()
        assert found["fixed"]["momentum"] == 0.9 - step / 100
        assert found["named"]["decay"] == 0.25
        assert found["named"]["beta1"] == pytest.approx(0.9 * min(1, (step + 1) / 10))
        assert found["scheduled"]["clip"] == 1.0 + step
    assert optimizer.names == ("fixed", "named", "scheduled")


def test_an_unknown_name_is_refused():
    with pytest.raises(ArgumentError, match=r"'matrx'.*did you mean `matrix`"):
        groups(Gpt(), {}, rest=SGD(rate="matrx"), rates={"matrix": 0.1})


@pytest.mark.parametrize("value", [-0.1, math.nan, math.inf, None, True, (1,)])
@pytest.mark.parametrize("field", ["rate", "decay"])
def test_a_wrong_number_names_field_and_group(value, field):
    with pytest.raises(ArgumentError, match=f"`{field}` of the group `all` is"):
        groups(Gpt(), {}, rest=SGD(**{"rate": 0.1, "name": "all", field: value}))


@pytest.mark.parametrize("value", [-1.0, math.nan, "much", None])
def test_a_function_that_returns_no_rate_is_caught_at_its_step(value):
    optimizer = groups(Gpt(), {}, rest=SGD(rate=lambda step: 0.1 if step < 5 else value))
    optimizer.apply(4)
    with pytest.raises(ArgumentError, match=r"`rate` of the group `rest` is .* at step 5"):
        optimizer.apply(5)


def test_each_group_is_clipped_by_its_own_limit():
    model = Gpt()
    optimizer = groups(
        model,
        {"//*[@name='wte']": SGD(rate=0.1, clip=0.5, name="wte"),
         "//*[@name='head']": SGD(rate=0.1, clip=1e9, name="head")},
        rest=SGD(rate=0.1),
    )  # fmt: skip
    for p in model.parameters():
        p.grad = torch.ones_like(p)
    norms = optimizer.clip()
    assert norms.keys() == {"wte", "head", "rest"}
    assert all(norm.shape == () for norm in norms.values())
    assert norms["wte"].item() == pytest.approx(math.sqrt(model.wte.weight.numel()))
    assert model.wte.weight.grad.norm().item() == pytest.approx(0.5, rel=1e-5)
    assert torch.equal(model.head.weight.grad, torch.ones_like(model.head.weight))
    optimizer.zero_grad()
    assert all(p.grad is None for p in model.parameters())
    assert optimizer.clip()["wte"].item() == 0


# ---- the table


def test_the_table_shows_what_is_trained():
    model = Gpt()
    optimizer = groups(
        model,
        {**specs(), "//*[@name='wte']": "frozen"},
        rest=AdamW(rate=0.1, decay=0.2, clip=3.0),
    )
    rows = {row.name: row for row in optimizer.rows()}
    assert list(rows) == ["matrices", "head", "rest", "frozen"]
    assert sum(row.elements for row in rows.values()) == sum(
        p.numel() for p in model.parameters()
    )
    matrices = sum(p.numel() for p in optimizer.parameters()["matrices"].values())
    sides = 4 * 16 + 21  # NorMuon keeps one number for each index of the longer side
    assert rows["matrices"].state_bytes == 8 * matrices + 4 * sides
    others = optimizer.parameters()["rest"]
    count = sum(p.numel() for p in others.values())
    assert rows["rest"].state_bytes == 2 * 8 * count + 4 * len(others)
    assert (rows["rest"].rate, rows["rest"].decay, rows["rest"].clip) == (0.1, 0.2, 3.0)
    text = optimizer.table()
    assert str(optimizer) == text
    for row in rows.values():
        assert f"{row.elements:,}" in next(
            x for x in text.splitlines() if x.startswith(row.name)
        )
    trained = sum(p.numel() for p in model.parameters() if p.requires_grad)
    assert f"trained: {trained:,} of" in text


# ---- state


def test_state_moves_to_a_model_with_another_order():
    """Groups in another order, and other groups: what counts is the path."""
    model = Gpt()
    spec = AdamW(rate=0.1)
    first = groups(model, {"//*[@name='h']": spec}, rest=AdamW(rate=0.1))
    train(model, first, 2)
    twin = copy.deepcopy(model)
    second = groups(twin, {"//*[@name='head']": spec, "//*[@name='wte']": spec}, rest=spec)
    second.load(
        {key: first.state()[key].clone() for key in sorted(first.state(), reverse=True)}
    )
    train(model, first, 2)
    train(twin, second, 2)
    for p, q in zip(model.parameters(), twin.parameters(), strict=True):
        assert torch.equal(p, q)


# ---- wrapped models


@pytest.mark.slow
@pytest.mark.compiles
def test_a_compiled_module_is_the_module_itself():
    plain, wrapped = Gpt(), Gpt()
    compiled = torch.compile(wrapped, backend="eager")
    ours = groups(compiled, specs(), rest=AdamW(rate=0.01))
    theirs = groups(plain, specs(), rest=AdamW(rate=0.01))
    assert ours.state().keys() == theirs.state().keys()
    train(compiled, ours, 3)
    train(plain, theirs, 3)
    torch.testing.assert_close(values(wrapped), values(plain))


@pytest.fixture(scope="module")
def two_processes(tmp_path_factory) -> list[dict]:
    """What two real processes found, over gloo on the loopback device."""
    place = tmp_path_factory.mktemp("meeting") / "store"
    return [json.loads(out) for out in run_worker(WORKER, place, "-W", "error")]


@pytest.fixture(scope="module")
def one_process() -> dict:
    model = Gpt()
    optimizer = groups(model, specs(), rest=AdamW(rate=0.01, clip=1.0))
    norms = train(model, optimizer, 4)
    state = {key: tensor.double().sum().item() for key, tensor in optimizer.state().items()}
    return {"values": values(model).tolist(), "state": state, "norms": norms}


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["ddp", "ddp shared out", "fsdp", "fsdp shared out"])
def test_two_processes_end_where_one_does(two_processes, one_process, kind):
    for found in two_processes:
        for what in ("values", "norms"):
            ours, one = torch.tensor(found[kind][what]), torch.tensor(one_process[what])
            torch.testing.assert_close(ours, one, rtol=0, atol=1e-9)
        assert found[kind]["state"] == pytest.approx(one_process["state"], rel=1e-7, abs=1e-9)
    assert two_processes[0][kind] == two_processes[1][kind]


@pytest.mark.long
@pytest.mark.slow
def test_sharded_state_is_loaded_whole_or_in_parts(two_processes):
    for found in two_processes:
        assert found["resumed"] == found["straight"]
        assert found["resumed from whole tensors"] == found["straight"]
        assert found["bytes"] < 0.75 * found["whole bytes"]


@pytest.mark.long
@pytest.mark.slow
def test_cut_parameters_begin_as_whole_ones(two_processes):
    model = Gpt()
    initialize(model, RULES, seed=3)
    for found in two_processes:
        assert found["initialized"] == values(model).tolist()
