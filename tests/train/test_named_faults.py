"""Faults of what a trainer is given that would show late, or never, are named at once."""

import threading
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.utils.parametrizations import weight_norm

from hotgrid.cluster import run_ranks
from hotgrid.errors import ArgumentError, StoreError
from hotgrid.nn import materialize, query, select
from hotgrid.train import (
    SGD,
    AdamW,
    EarlyStopping,
    Evaluation,
    Loss,
    ModelFlops,
    Muon,
    TensorBatches,
    groups,
    load_partial,
    lora,
)

from .training_cases import data, loss, net, sgd, trainer, weights


@dataclass
class Stream:
    """A stream whose batches depend on how many were drawn."""

    drawn: int = 0

    def __next__(self):
        self.drawn += 1
        return tuple(x[self.drawn % 8 :][:4] for x in data())

    def state(self):
        return self.drawn

    def load(self, state):
        self.drawn = int(state)


@pytest.mark.parametrize(
    ("rows", "size", "text"),
    [
        (28, 7, "a batch of 7 rows cannot be shared equally by 2 ranks"),
        (21, 8, "the last batch of a pass has 5 rows, .* leave out 1"),
        (5, 8, "a batch of 5 rows"),
    ],
)
def test_ranks_share_every_batch_of_a_pass_equally(rows, size, text):
    source = TensorBatches(data(rows), size, endless=False)
    with pytest.raises(ArgumentError, match=text):
        source.batch(0, 0, 2)
    source.batch(0, 0, 1)


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_count_that_comes_only_sometimes_is_refused(ranks):
    own = threading.local()

    def step(module, batch):
        own.calls = getattr(own, "calls", 0) + 1
        return {"loss": loss(module, batch), **({"count": 4.0} if own.calls % 2 else {})}

    def rank(group):
        trainer(ranks=group, step=step, accumulate=2, steps=2).run()

    with pytest.raises(ArgumentError, match="a `count` for some micro-batches"):
        run_ranks(ranks, rank, timeout=60)


def test_a_stream_continues_on_as_many_ranks(tmp_path):
    trainer(source=Stream(), steps=3, folder=tmp_path).run()

    def rank(group):
        trainer(source=Stream(), steps=5, folder=tmp_path, ranks=group).run(resume=True)

    with pytest.raises(ArgumentError, match=r"each of 1 ranks had its own part, .* are 2"):
        run_ranks(2, rank, timeout=60)
    assert trainer(source=Stream(), steps=5, folder=tmp_path).run(resume=True).step == 5


class Kept(nn.Linear):
    """A layer with something else in its state."""

    def get_extra_state(self):
        return {"n": 1}

    def set_extra_state(self, state):
        pass


class Plain(nn.Linear):
    def __init__(self, kept: torch.Tensor):
        super().__init__(6, 2, dtype=torch.float64)
        self.register_buffer("kept", kept)


class Turned(nn.Linear):
    """A layer that saves something else than what it has."""

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "weight"] = self.weight.T.contiguous()


class Silent(nn.Linear):
    """A layer that does not save all that it has."""

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        del destination[prefix + "bias"]


def inferred() -> torch.Tensor:
    with torch.inference_mode():
        return torch.ones(2)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: Kept(6, 2, dtype=torch.float64), "`_extra_state`, which is no tensor"),
        (lambda: Plain(torch.ones(1).expand(4)), "`kept`, an expanded tensor"),
        (lambda: Plain(inferred()), "`kept`, made in inference mode"),
        (lambda: Turned(6, 2, dtype=torch.float64), "has `weight`, which `state_dict` has com"),
        (lambda: Silent(6, 2, dtype=torch.float64), "lacks `bias`, which is trained"),
    ],
)
def test_what_could_not_be_loaded_again_is_refused_at_once(make, text, tmp_path):
    with pytest.raises(ArgumentError, match=text):
        trainer(make(), steps=2, folder=tmp_path).run()
    assert trainer(make(), steps=2).run().step == 2


def test_numbers_of_8_bits_are_averaged_and_loaded(tmp_path):
    made = Plain(torch.tensor([2.0, 0.5]).to(torch.float8_e4m3fn))
    trainer(made, steps=3, average=0.5, folder=tmp_path).run()
    assert made.kept.float().tolist() == [2.0, 0.5]
    weights = {"weight": made.weight, "bias": made.bias}
    load_partial(made, weights | {"kept": torch.tensor([4.0, 1.0])})
    assert made.kept.float().tolist() == [4.0, 1.0]
    with pytest.raises(ArgumentError, match=r"float32 instead of torch\.float8"):
        load_partial(made, weights | {"kept": torch.tensor([1e6, 1.0])})


@pytest.mark.parametrize(
    ("kind", "source"),
    [
        (torch.uint8, torch.tensor([300])),
        (torch.uint8, torch.tensor([-1])),
        (torch.int32, torch.tensor([2**40])),
        (torch.int64, torch.tensor([2**63], dtype=torch.uint64)),
        (torch.bool, torch.tensor([5])),
        (torch.int64, torch.tensor([1 + 2j])),
    ],
)
def test_whole_numbers_that_do_not_fit_are_refused(kind, source):
    layer = Plain(torch.ones(1, dtype=kind))
    with pytest.raises(ArgumentError, match=f"{source.dtype} instead of {kind}"):
        load_partial(layer, {**layer.state_dict(), "kept": source})
    load_partial(layer, {**layer.state_dict(), "kept": torch.tensor([0], dtype=torch.int16)})
    assert layer.kept.tolist() == [0]


def lazy() -> nn.Module:
    return nn.Sequential(nn.LazyLinear(2))


def sparse() -> nn.Module:
    return nn.Sequential(nn.Embedding(4, 2, sparse=True))


def counted(count: torch.Tensor) -> torch.Tensor:
    made = trainer(step=lambda *given: {"loss": loss(*given), "count": count}, steps=2)
    made.run()
    return weights(made.module)


def test_a_count_may_be_a_tensor_of_one_number():
    assert torch.equal(counted(torch.tensor([3.0])), counted(torch.tensor(3.0)))


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: groups(lazy(), {}, rest=SGD(rate=0.1)), "LazyLinear `0` has parameters"),
        (lambda: trainer(lazy()), "LazyLinear `0` has parameters"),
        (lambda: load_partial(nn.LazyLinear(2), {}), "LazyLinear has parameters"),
        (lambda: groups(sparse(), {}, rest=SGD(rate=0.1)), r"`0` is Embedding\(sparse=True\)"),
        (lambda: trainer(sparse()), r"`0` is Embedding\(sparse=True\)"),
        (
            lambda: groups(net(), {"//Linear[1]": SGD(rate=1, name="frozen")}, rest="frozen"),
            "trained group is called 'frozen'",
        ),
        (
            lambda: groups(net(), {}, rest=AdamW(rate=0.1, clip=0)),
            "`clip` of the group `rest` is 0; expected a number above 0",
        ),
        (
            lambda: groups(nn.ParameterList([torch.ones(3, 0)]), {}, rest=Muon(rate=0.1)),
            r"`0` of shape \(3, 0\) has no elements",
        ),
        (lambda: EarlyStopping(least=float("nan")), "`least` is nan"),
        (lambda: trainer(metrics=[ModelFlops(1.0), ModelFlops(2.0)]), "are called `MFU`"),
        (
            lambda: Evaluation(TensorBatches(data(4), 2, endless=False), 1, [Loss(), Loss()]),
            "are called `loss`",
        ),
        (lambda: lora(net(), "//Linear", True), "`rank` is True"),
        (lambda: lora(net(), "//Linear", 1, float("nan")), "`alpha` is nan"),
        (lambda: counted(torch.ones(2)), r"the `count` .* has the shape \[2\]"),
        (lambda: lora(nn.Sequential(weight_norm(nn.Linear(3, 2))), "*/*", 1), "weight of `0`"),
    ],
)
def test_what_torch_would_not_explain_is_named(call, text):
    with pytest.raises(ArgumentError, match=text):
        call()


def test_an_evaluation_of_nothing_is_refused():
    class Nothing(TensorBatches):
        def __len__(self):
            return 0

    with pytest.raises(ArgumentError, match="has no batches"):
        Evaluation(Nothing(data(4), 2, endless=False), every=1)


def test_what_is_frozen_may_be_sparse():
    made = nn.Sequential(nn.Embedding(4, 2, sparse=True), nn.Linear(2, 1))
    groups(made, {"//Embedding": "frozen"}, rest=SGD(rate=0.1))


@pytest.mark.parametrize("own", [False, True])
def test_an_optimizer_made_before_the_module_moved_is_refused(own):
    module = net()
    made: Any = groups(module, {}, rest=SGD(rate=0.1, momentum=0.9))
    slots = made._groups[0].bound.slots["0.weight"]
    if own:
        plain = torch.optim.Adagrad(module.parameters())
        made, slots = plain, plain.state[next(module.parameters())]
    slots |= {name: x.to("meta") for name, x in slots.items() if x.ndim}
    with pytest.raises(ArgumentError, match="for parameters on meta, which are on cpu now"):
        trainer(module, optimizer=made)
    # Without a state nothing is left behind.
    trainer(module, optimizer=sgd(module))


@pytest.mark.parametrize(
    ("damage", "text"),
    [
        (lambda path: path.write_text(""), "it is empty"),
        (lambda path: path.write_text("a = 1\n"), "it has no 'format'"),
        (lambda path: path.unlink(), r"run.toml` is missing, .* restore it"),
    ],
)
def test_a_record_that_is_lost_is_said(damage, text, tmp_path):
    trainer(steps=2, folder=tmp_path).run()
    damage(tmp_path / "run.toml")
    with pytest.raises(StoreError, match=text):
        trainer(steps=3, folder=tmp_path).run(resume=True)


def test_whole_numbers_of_a_query_are_written_in_full():
    big = nn.Sequential(nn.Linear(2048, 1024, device="meta"))
    assert select(big, query().descendants("Param").where(size=2097152)).paths == ["0.weight"]
    assert "0.00001" in str(query().where(index=1e-5))


def test_what_has_memory_keeps_its_values():
    real, meta, mixed = nn.Linear(2, 2), nn.Linear(2, 2, device="meta"), nn.Linear(2, 2)
    mixed.weight = nn.Parameter(mixed.weight.to("meta"))
    nn.init.constant_(real.weight, 7.0)
    nn.init.constant_(mixed.bias, 5.0)
    kept = real.weight
    materialize(nn.Sequential(real, meta, mixed), "cpu")
    assert real.weight is kept
    assert set(real.weight.flatten().tolist()) == {7.0}
    assert mixed.bias.tolist() == [5.0, 5.0]
    assert mixed.weight.isfinite().all()
    assert not meta.weight.is_meta
