"""Two ranks learn what one does, copied or cut."""

import json
from pathlib import Path

import pytest
import torch

from hotgrid.cluster import run_ranks
from hotgrid.errors import ArgumentError, UnstableError
from hotgrid.train import SGD, Evaluation, Saving, TensorBatches, groups, read_events

from ..cluster.forked_ranks import run_forked, run_worker  # noqa: TID252  not a package
from .test_trainer import Poisoned, Uneven
from .training_cases import data, net, sgd, trainer, weighted, weights

WORKER = Path(__file__).with_name("ranks_worker.py")
# The sum of two halves is rounded once more than the sum of the whole, in float64.
TOLERANCE = 1e-12


def on_ranks(count, **options):
    """The weights and values of every rank of a run in threads."""

    def rank(ranks):
        run = trainer(ranks=ranks, **options)
        outcome = run.run()
        return weights(run.module), outcome.values

    return run_ranks(count, rank, timeout=120)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"seed": 3}, "rank 1 was given another seed than rank 0: 3, there 0"),
        ({"steps": 9}, "another steps than rank 0: 9, there 10"),
        ({"size": 4}, "another batches than rank 0: 48 rows, 4 in a batch"),
        ({"asked": {"data": "b"}}, "another data than rank 0: b, there none"),
        # These would wait for each other.
        ({"log_every": 3}, "another log_every than rank 0: 3, there 1"),
        ({"folder": "not made"}, "another folder than rank 0: a folder, there no folder"),
        (
            {"evaluation": Evaluation(TensorBatches(data(20), 6, endless=False), every=2)},
            "another evaluation than rank 0: 4 batches every 2 steps, loss, there none",
        ),
        (
            {"optimizer": lambda m: torch.optim.SGD(m.parameters(), lr=0.2, momentum=0.9)},
            r"another optimizer than rank 0: .*rate 0\.2, .* there .*rate 0\.1,",
        ),
    ],
)
def test_ranks_with_different_settings_are_refused(options, text):
    def rank(ranks):
        trainer(ranks=ranks, **(options if ranks.rank else {})).run()

    with pytest.raises(ArgumentError, match=text):
        run_ranks(2, rank, timeout=120)


@pytest.mark.parametrize("accumulate", [1, 2])
def test_two_ranks_learn_what_one_does(accumulate):
    evaluation = Evaluation(TensorBatches(data(20), 6, endless=False), every=4)
    options = {"size": 8, "accumulate": accumulate, "evaluation": evaluation, "average": 0.9}
    one = trainer(**options)
    values = one.run().values
    found = on_ranks(2, **options)
    assert torch.equal(found[0][0], found[1][0])
    assert found[0][1] == found[1][1]
    torch.testing.assert_close(found[0][0], weights(one.module), rtol=0, atol=TOLERANCE)
    for name, value in values.items():
        assert found[0][1][name] == pytest.approx(value, rel=1e-10), name


def test_an_optimizer_may_freeze_what_ranks_share():
    def optimizer(module):
        return groups(module, {"//Linear[1]": "frozen"}, rest=SGD(rate=0.1, momentum=0.9))

    one = trainer(optimizer=optimizer)
    one.run()
    for found, _ in on_ranks(2, optimizer=optimizer):
        torch.testing.assert_close(found, weights(one.module), rtol=0, atol=TOLERANCE)


def test_ranks_count_by_their_items():
    one = trainer(source=Uneven(True), step=weighted)
    one.run()
    found = on_ranks(3, source=Uneven(True), step=weighted)
    torch.testing.assert_close(found[0][0], weights(one.module), rtol=0, atol=TOLERANCE)


def test_a_bad_loss_of_one_rank_ends_all():
    class OnSecond(Poisoned):
        def batch(self, index, rank, ranks):
            return (Poisoned(self.bad) if rank else Poisoned(set())).batch(index, rank, ranks)

    def rank(ranks):
        with pytest.raises(UnstableError) as problem:
            trainer(ranks=ranks, source=OnSecond({4}), log_every=3).run()
        return str(problem.value)

    for text in run_ranks(2, rank, timeout=120):
        assert "the loss is nan in step 5, batch 4, rank 1; the first gradient" in text


def test_two_ranks_continue_to_the_bit(tmp_path):
    options = {"log_every": 3, "saving": Saving(every=4), "average": 0.9}
    whole = on_ranks(2, steps=12, folder=tmp_path / "whole", **options)
    on_ranks(2, steps=6, folder=tmp_path / "cut", **options)

    def rank(ranks):
        run = trainer(ranks=ranks, steps=12, folder=tmp_path / "cut", **options)
        run.run(resume=True)
        return weights(run.module)

    for found in run_ranks(2, rank, timeout=120):
        assert torch.equal(found, whole[0][0])
    logged = [
        [e["values"] for e in read_events(tmp_path / name) if e["event"] == "train"]
        for name in ("whole", "cut")
    ]
    assert logged[0] == logged[1]


def test_a_batch_must_be_shared_equally():
    with pytest.raises(ArgumentError, match="9 rows cannot be shared equally by 2 ranks"):
        on_ranks(2, size=9)


@pytest.fixture(scope="module")
def two_processes(tmp_path_factory) -> list[dict]:
    found = run_worker(WORKER, tmp_path_factory.mktemp("ranks"))
    return [json.loads(out.splitlines()[-1]) for out in found]


def expected(**options) -> torch.Tensor:
    run = trainer(net(), size=8, steps=10, **options)
    run.run()
    return weights(run.module)


@pytest.mark.slow
@pytest.mark.parametrize("optimizer", ["sgd", "groups"])
def test_cut_parameters_learn_what_copies_do(two_processes, optimizer):
    for found in two_processes:
        copies = torch.tensor(found[f"copies {optimizer}"], dtype=torch.float64)
        cut = torch.tensor(found[f"cut {optimizer}"], dtype=torch.float64)
        torch.testing.assert_close(cut, copies, rtol=0, atol=TOLERANCE)
    if optimizer == "sgd":
        one = expected(optimizer=sgd, average=0.9, accumulate=2)
        torch.testing.assert_close(copies, one, rtol=0, atol=TOLERANCE)


@pytest.mark.slow
def test_cut_parameters_continue_to_the_bit(two_processes):
    for found in two_processes:
        assert found["cut, resumed"] == found["cut sgd"]
        assert found["average, resumed"] == found["average"]


@pytest.mark.slow
def test_what_was_cut_continues_on_one_rank(two_processes):
    on_one = torch.tensor(two_processes[0]["on one"], dtype=torch.float64)
    cut = torch.tensor(two_processes[0]["cut sgd"], dtype=torch.float64)
    torch.testing.assert_close(on_one, cut, rtol=0, atol=TOLERANCE)


@pytest.mark.slow
def test_cut_parameters_are_evaluated_alike(two_processes):
    one = two_processes[0]
    assert one["valid, cut"] == pytest.approx(one["valid, copies"], rel=1e-10)


LOST = """
import os
import torch
from torch import nn
from hotgrid.cluster import world
from hotgrid.errors import CommunicationError
from hotgrid.train import AdamW, TensorBatches, Trainer, groups

def loss(module, batch):
    loss.calls += 1
    if ranks.rank and loss.calls == 3:
        os._exit(0)
    return module(*batch).square().mean()

loss.calls, ranks = 0, world("cpu")
run = Trainer(nn.Linear(2, 1), loss, TensorBatches((torch.ones(8, 2),), 4),
              lambda module: groups(module, {}, rest=AdamW(rate=1e-3)), steps=9, ranks=ranks,
              show=False)
try:
    run.run()
except CommunicationError as problem:
    print(problem, flush=True)
os._exit(0)
"""


@pytest.mark.slow
def test_a_rank_that_is_lost_is_named():
    first, _ = run_forked(LOST, loaded="hotgrid.train")
    assert "rank 0 of 2 lost another rank while gradients were sent" in first
