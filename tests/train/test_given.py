"""What a trainer is given: mistakes are named, and what is better is what the metric says."""

import math
from typing import ClassVar

import numpy as np
import pytest
import torch
from torch import nn

from hotgrid.errors import ArgumentError, UnstableError
from hotgrid.store import Checkpoints
from hotgrid.train import (
    SGD,
    Accuracy,
    EarlyStopping,
    Evaluation,
    Loss,
    Metric,
    OptimizerAdapter,
    Saving,
    TensorBatches,
    groups,
    load_partial,
    lora,
    read_run,
)

from .training_cases import data, loss, net, sgd, trainer


def classify(module, batch):
    logits = module(batch[0])
    loss = nn.functional.cross_entropy(logits, batch[1])
    return {"loss": loss, "scores": logits, "targets": batch[1]}


def classes():
    torch.manual_seed(0)
    x = torch.randn(64, 4, dtype=torch.float64)
    return x, (x[:, 0] > 0).long()


def classifier(folder=None, **options):
    torch.manual_seed(1)
    held = TensorBatches(classes(), 64, endless=False)
    return trainer(
        nn.Linear(4, 2, dtype=torch.float64),
        source=TensorBatches(classes(), 16),
        evaluation=Evaluation(held, every=5, metrics=[Loss(), Accuracy()]),
        folder=folder,
        **{"step": classify, "steps": 40, **options},
    )


def test_the_best_accuracy_is_the_highest(tmp_path):
    classifier(tmp_path, saving=Saving(every=5, last=1, best="valid/accuracy")).run()
    curve = dict(read_run(tmp_path).curves["valid/accuracy"])
    kept = [step for step in Checkpoints(tmp_path / "checkpoints").steps() if step != 40]
    assert max(curve.values()) > min(curve.values())
    assert [curve[step] for step in kept] == [max(curve.values())] * len(kept)


def test_a_resumed_run_may_watch_another_value(tmp_path):
    falling = iter([5.0, 5.0, 5.0, 5.0, 4.0, 3.0, 2.0, 2.5, 2.5])

    def step(module, batch):
        found = classify(module, batch)
        return found if module.training else found | {"loss": torch.tensor(next(falling))}

    def run(steps, watched):
        saving = Saving(every=1000, last=1, best=watched)
        stopping = EarlyStopping(watched, patience=2)
        return classifier(
            tmp_path, step=step, steps=steps, saving=saving, early_stopping=stopping
        )

    run(10, "valid/accuracy").run()
    outcome = run(60, "valid/loss").run(resume=True)
    # An accuracy of at most 1 is below every one of these losses, and no measure for them.
    assert (outcome.step, outcome.why) == (45, "early stopping")
    assert Checkpoints(tmp_path / "checkpoints").steps() == [35, 45]


def test_early_stopping_waits_while_accuracy_rises():
    rule = EarlyStopping("valid/accuracy", patience=1)
    run = classifier(early_stopping=rule)
    assert run._early_stopping.better == "highest"
    lowest = EarlyStopping("valid/accuracy", patience=1, better="lowest")
    assert classifier(early_stopping=lowest)._early_stopping.better == "lowest"


@pytest.mark.parametrize("average", ["x", 0, 1.0, [0.9]])
def test_a_senseless_average_is_refused(average):
    with pytest.raises(ArgumentError, match=r"`average` is .*; expected a decay in \(0, 1\)"):
        trainer(average=average)


def test_parameters_that_are_not_finite_are_not_saved(tmp_path):
    def step(module, batch):
        if run.step == 12:
            with torch.no_grad():
                next(module.parameters())[0] = math.inf
            return sum(p.sum() * 0.0 for p in list(module.parameters())[1:])
        return loss(module, batch)

    run = trainer(step=step, steps=30, folder=tmp_path, saving=Saving(every=13), log_every=13)
    with pytest.raises(
        UnstableError, match=r"`.*` is not finite after step 13; the step is not"
    ):
        run.run()
    assert list(Checkpoints(tmp_path / "checkpoints").steps()) == [0]
    assert read_run(tmp_path).status == "ended by a fault"
    assert (tmp_path / "report.html").exists()


def test_a_longer_run_says_how_long_it_is(tmp_path):
    trainer(steps=4, folder=tmp_path).run()
    trainer(steps=6, folder=tmp_path).run(resume=True)
    assert read_run(tmp_path).facts["steps"] == 6


def test_groups_hold_all_that_is_trained():
    module = net()
    made = groups(module, {}, rest=SGD(rate=0.1))
    lora(module, "//Linear[1]", rank=1)
    with pytest.raises(ArgumentError, match=r"`0\.lora_a` is trained and in no group"):
        trainer(module, optimizer=made)


def test_whatever_is_asked_is_compared_as_text(tmp_path):
    asked = {"sizes": (2, 3), "file": tmp_path, "share": 0.1}
    trainer(steps=2, folder=tmp_path, asked=asked).run()
    trainer(steps=3, folder=tmp_path, asked=asked).run(resume=True)
    with pytest.raises(ArgumentError, match=r"its share: 0\.1, here 0\.2"):
        trainer(steps=3, folder=tmp_path, asked=asked | {"share": 0.2}).run(resume=True)


@pytest.mark.parametrize("rate", [lambda step: -1.0, lambda step: math.nan, lambda step: "a"])
def test_a_rate_that_is_no_rate_is_named(rate):
    def optimizer(module):
        return OptimizerAdapter(sgd(module), module, rate=rate)

    with pytest.raises(ArgumentError, match=r"`rate` of the optimizer is .* at step 0"):
        trainer(optimizer=optimizer)


@pytest.mark.parametrize("given", [3.0, None, (torch.ones(2),)])
def test_a_metric_without_sums_is_named(given):
    class Mine(Metric):
        name: ClassVar[str] = "mine"  # pyright: ignore[reportIncompatibleMethodOverride]

        def sums(self, seen):
            return given

        def value(self, sums, window):
            return sums[0]

    with pytest.raises(ArgumentError, match="`sums` of the metric `mine` returned"):
        trainer(metrics=[Mine()], steps=2).run()


@pytest.mark.parametrize("name", ["../evil", "run.toml", "events.jsonl", "", ".hidden", "a/b"])
def test_files_of_a_run_have_plain_names(name, tmp_path):
    with pytest.raises(ArgumentError, match=r"`files` has .* plain name"):
        trainer(steps=2, folder=tmp_path / "run", files={name: b"x"}).run()
    assert not (tmp_path / "evil").exists()


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"folder": ""}, "`folder` is ''; give the path of a folder"),
        ({"metrics": [Accuracy]}, "`metrics` has <class .*such as"),
        ({"metrics": Accuracy()}, "`metrics` has Accuracy"),
        ({"metrics": "accuracy"}, "`metrics` has 'accuracy'"),
        ({"device": "nowhere"}, "the device 'nowhere' cannot be used here"),
        ({"module": lambda x: x}, "`module` is a function; expected an nn.Module"),
        ({"optimizer": lambda m: torch.optim.LBFGS(m.parameters())}, "`LBFGS` evaluates"),
        (
            {"optimizer": groups(net(), {}, rest=SGD(rate=0.1))},
            r"parameter \S*weight of group `rest`, of shape .* is not one of",
        ),
        ({"optimizer": lambda m: None}, "`optimizer` returned None; expected the"),
        ({"step": None}, "`loss` is None; expected a function"),
        (
            {"evaluation": TensorBatches(data(8), 4, endless=False)},
            r"`evaluation` is a TensorBatches; expected `Evaluation\(",
        ),
        ({"saving": 100}, "`saving` is a int; expected `Saving"),
        ({"asked": ["data"]}, r"`asked` is \['data'\]; expected a dict"),
        ({"asked": {"optimizer": "mine"}}, "`asked` has `optimizer`, which the trainer"),
    ],
)
def test_wrong_arguments_are_refused(options, text):
    given = {"steps": 2, **options}
    module = given.pop("module", None) or net()
    with pytest.raises(ArgumentError, match=text):
        trainer(module, **given)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: Saving(last=0), "`last` is 0; expected a number from 1"),
        (
            lambda: TensorBatches((torch.ones(4, 2), np.ones((4, 3))), 2),
            r"`tensors` has a NumPy array of shape \(4, 3\); .* torch.from_numpy",
        ),
        (lambda: Saving(better="low"), "`better` is 'low'; expected lowest or highest"),
        (
            lambda: Evaluation(TensorBatches(data(8), 4, endless=False), every=1, name="train"),
            "`name` is 'train'",
        ),
    ],
)
def test_wrong_rules_are_refused(make, text):
    with pytest.raises(ArgumentError, match=text):
        make()


def test_a_loss_without_gradient_and_a_wrong_count_are_named():
    frozen = net()
    run = trainer(frozen, steps=2)
    frozen.requires_grad_(False)
    with pytest.raises(ArgumentError, match="the loss depends on no parameter that is trained"):
        run.run()
    with pytest.raises(ArgumentError, match="expected a real number"):
        trainer(step=lambda module, batch: loss(module, batch) * 1j, steps=2).run()
    for count in (0, -8, "a"):

        def step(module, batch, count=count):
            return {"loss": loss(module, batch), "count": count}

        with pytest.raises(
            ArgumentError, match=f"the `count` of the step function is {count!r}"
        ):
            trainer(step=step, steps=2).run()


def test_numbers_that_do_not_fit_and_empty_loads_are_refused():
    layer = nn.Linear(2, 2).half()
    full = {"weight": torch.full((2, 2), 1e6), "bias": torch.zeros(2)}
    with pytest.raises(ArgumentError, match="float32 instead of torch"):
        load_partial(layer, full)
    with pytest.raises(ArgumentError, match="nothing would be loaded"):
        load_partial(layer, {}, allow_missing=True)
    assert layer.weight.isfinite().all()
