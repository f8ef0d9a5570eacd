"""Optimizers of any kind continue with exactly what they had, or are refused by name."""

from dataclasses import dataclass

import pytest
import torch

from hotgrid.errors import ArgumentError
from hotgrid.train import LossGuard, Metric, OptimizerAdapter, Saving

from .test_trainer import Poisoned
from .training_cases import net, sgd, trainer, weights


class InGroup(torch.optim.Optimizer):
    """Counts its steps in the group, as those without a schedule do."""

    def __init__(self, parameters):
        super().__init__(parameters, {"lr": 0.05, "betas": (0.9, 0.99)})

    @torch.no_grad()
    def step(self):  # pyright: ignore[reportIncompatibleMethodOverride]
        for group in self.param_groups:
            group["count"] = group.get("count", 0) + 1
            group["sum"] = group.get("sum", torch.zeros(())) + 0.1
            group["betas"] = (0.9, 0.99 - 0.001 * group["count"])
            for p in group["params"]:
                p.sub_(p.grad, alpha=group["lr"] / (group["count"] + float(group["sum"])))
                p.mul_(group["betas"][1])


class Counted(torch.optim.Optimizer):
    """Counts its steps as a Python number, beside a copy in float32 of each parameter."""

    def __init__(self, parameters):
        super().__init__(parameters, {"lr": 0.05})

    @torch.no_grad()
    def step(self):  # pyright: ignore[reportIncompatibleMethodOverride]
        for p in self.param_groups[0]["params"]:
            state = self.state[p]
            if not state:
                state.update(count=0, scale=1.0, copy=p.detach().float().clone(), none=None)
            assert type(state["count"]) is int
            assert state["none"] is None
            state["count"] += 1
            state["scale"] *= 1.1
            rate = self.param_groups[0]["lr"] * state["scale"] / state["count"]
            state["copy"].sub_(p.grad.float(), alpha=rate)
            p.copy_(state["copy"])


def fitted(module, batch):
    kind = next(module.parameters()).dtype
    return (module(batch[0].to(kind)) - batch[1].to(kind)).float().square().mean()


def falling(module):
    return OptimizerAdapter(sgd(module), module, rate=lambda step: 0.1 / (1 + step))


@pytest.mark.parametrize(
    ("make", "dtype"),
    [
        (InGroup, torch.float64),
        (Counted, torch.bfloat16),
        (torch.optim.NAdam, torch.float64),
        (torch.optim.Adafactor, torch.bfloat16),
        (falling, torch.float64),
    ],
)
def test_a_resumed_run_has_all_that_an_optimizer_keeps(tmp_path, make, dtype):
    def run(steps, folder):
        module = net(dtype)
        made = make(module if make is falling else module.parameters())
        return trainer(
            module, step=fitted, optimizer=made, steps=steps, folder=folder,
            saving=Saving(every=4),
        )  # fmt: skip

    whole = run(9, tmp_path / "whole")
    whole.run()
    run(5, tmp_path / "cut").run()
    again = run(9, tmp_path / "cut")
    again.run(resume=True)
    assert torch.equal(weights(again.module), weights(whole.module))
    assert again.values == whole.values


def test_what_groups_count_goes_back_with_a_rollback(tmp_path):
    run = trainer(
        source=Poisoned({5}), folder=tmp_path, guard=LossGuard(rollback=True), log_every=4,
        steps=12, optimizer=lambda module: InGroup(module.parameters()),
    )  # fmt: skip
    run.run()

    class Without:
        def batch(self, index, rank, ranks):
            return Poisoned(set()).batch(index + (index >= 5), rank, ranks)

    right = trainer(
        source=Without(), steps=12, optimizer=lambda module: InGroup(module.parameters())
    )
    right.run()
    assert torch.equal(weights(run.module), weights(right.module))


@pytest.mark.parametrize("place", ["state", "group", "other"])
def test_what_cannot_be_saved_is_named(place, tmp_path):
    class Odd(torch.optim.SGD):
        def step(self, closure=None):
            where = {
                "state": self.state[self.param_groups[0]["params"][0]],
                "group": self.param_groups[0],
                "other": self.state["all"],
            }
            where[place]["history"] = ["text"]

    text = "none of its parameters" if place == "other" else r"history`, a list, which cannot"
    run = trainer(optimizer=lambda m: Odd(m.parameters(), 0.1), steps=2, folder=tmp_path)
    with pytest.raises(ArgumentError, match=text):
        run.run()
    # Without a folder nothing is to be saved.
    trainer(optimizer=lambda m: Odd(m.parameters(), 0.1), steps=2).run()


@dataclass(frozen=True)
class Counting(Metric):
    """How many micro-batches there were, in as many numbers as asked."""

    called: str = "a"
    numbers: int = 1

    @property
    def name(self) -> str:
        return self.called

    def sums(self, seen):
        return (1.0,) * self.numbers

    def value(self, sums, window):
        return sums[-1]


@pytest.mark.parametrize(
    ("before", "after", "counted"),
    [
        ([Counting("a")], [], {}),
        ([], [Counting("a")], {"train/a": 2.0}),
        ([Counting("a")], [Counting("b"), Counting("a")], {"train/a": 6.0, "train/b": 2.0}),
        ([Counting("a")], [Counting("a", numbers=2)], {"train/a": 2.0}),
    ],
)
def test_rows_not_yet_shown_go_to_their_metric(tmp_path, before, after, counted):
    options = {"folder": tmp_path, "log_every": 6}
    cut = trainer(steps=12, metrics=before, saving=Saving(every=4), **options)
    step = cut._making.step

    def until(done, *given):
        if done == 5:
            raise KeyboardInterrupt
        step(done, *given)

    cut._making.step = until
    with pytest.raises(KeyboardInterrupt):
        cut.run()
    again = trainer(steps=6, metrics=after, **options)
    again.run(resume=True)
    found = {name: x for name, x in again.values.items() if name in ("train/a", "train/b")}
    assert found == counted
    whole = trainer(steps=6, log_every=6)
    whole.run()
    norm = "train/gradient norm, all"
    assert again.values[norm] == whole.values[norm]
