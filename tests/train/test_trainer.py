"""The loop: it makes the steps that a plain loop makes."""

import math
import shutil
import weakref
from dataclasses import dataclass

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from hotgrid.data import PackedBatches, Shards
from hotgrid.errors import ArgumentError, StoreError, UnstableError
from hotgrid.train import (
    Accuracy,
    EarlyStopping,
    Evaluation,
    GradientNorm,
    Loss,
    LossGuard,
    OptimizerAdapter,
    Saving,
    TensorBatches,
    Throughput,
    Trainer,
    read_events,
)

from .training_cases import data, loss, net, sgd, trainer, weighted, weights


def by_hand(steps: int, size: int, average: float | None = None):
    """The same run as a plain loop, bit for bit."""
    module = net()
    optimizer = sgd(module)
    source = TensorBatches(data(), size, seed=1)
    shadow = [p.detach().clone() for p in module.parameters()]
    losses = []
    for step in range(steps):
        found = loss(module, source.batch(step, 0, 1))
        found.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(found.item())
        for s, p in zip(shadow, module.parameters(), strict=True):
            s.lerp_(p.detach(), 1 - (average or 0))
    return module, losses, shadow


def test_it_makes_the_steps_of_a_plain_loop(tmp_path):
    module, losses, shadow = by_hand(12, 8, average=0.8)
    run = trainer(steps=12, folder=tmp_path, average=0.8)
    outcome = run.run()
    assert (outcome.step, outcome.why) == (12, "finished")
    assert torch.equal(weights(run.module), weights(module))
    logged = [e["values"]["train/loss"] for e in read_events(tmp_path) if e["event"] == "train"]
    assert logged == losses
    with run.averaged():
        assert torch.equal(weights(run.module), torch.cat([s.flatten() for s in shadow]))
    assert torch.equal(weights(run.module), weights(module))


@pytest.mark.parametrize("k", [2, 4])
def test_accumulating_k_is_one_batch_of_k(k):
    whole, parts = trainer(size=16), trainer(size=16 // k, accumulate=k)
    ends = [each.run().values["train/loss"] for each in (whole, parts)]
    torch.testing.assert_close(weights(whole.module), weights(parts.module), rtol=0, atol=1e-13)
    assert ends[0] == pytest.approx(ends[1], rel=1e-12)


class Uneven:
    """Batches of 12 rows, cut into micro-batches of 3, 1 and 8."""

    def __init__(self, together: bool):
        self.sizes = [12] if together else [3, 1, 8]
        self.data = data()

    def batch(self, index, rank, ranks):
        step, place = divmod(index, len(self.sizes))
        begin = 12 * (step % 4) + sum(self.sizes[:place])
        return tuple(x[begin : begin + self.sizes[place]][rank::ranks] for x in self.data)


def test_micro_batches_of_different_sizes_count_by_their_items():
    runs = [
        trainer(source=Uneven(together), step=weighted, accumulate=1 if together else 3)
        for together in (True, False)
    ]
    ends = [run.run().values["train/loss"] for run in runs]
    torch.testing.assert_close(
        weights(runs[0].module), weights(runs[1].module), rtol=0, atol=1e-13
    )
    assert ends[0] == pytest.approx(ends[1], rel=1e-12)


@dataclass(frozen=True)
class LossSeen(Loss):
    """The loss as a metric that is asked in every micro-batch."""

    name = "loss, seen"


@dataclass(frozen=True)
class NormSeen(GradientNorm):
    """The norm as a metric that is asked in every step."""

    @property
    def name(self) -> str:
        return "norm, seen"


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("step", [loss, weighted])
def test_what_the_guard_reads_is_what_metrics_see(step, k, tmp_path):
    run = trainer(
        step=step, steps=7, accumulate=k, log_every=3, folder=tmp_path,
        metrics=(LossSeen(), NormSeen("all")),
    )  # fmt: skip
    run.run()
    logged = [e["values"] for e in read_events(tmp_path) if e["event"] == "train"]
    assert len(logged) == 3
    for values in logged:
        assert values["train/loss"] == values["train/loss, seen"]
        assert values["train/gradient norm, all"] == values["train/norm, seen"] > 0


def test_nothing_waits_for_the_device_between_logs(monkeypatch):
    read: list[int] = []

    class Reads(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            if "_local_scalar_dense" in str(func):
                read.append(run.step)
            return func(*args, **(kwargs or {}))

    def noting(method):
        def noted(self, *args, **kwargs):
            read.append(run.step)
            return method(self, *args, **kwargs)

        return noted

    # These read without an operator.
    for name in ("tolist", "numpy", "cpu"):
        monkeypatch.setattr(torch.Tensor, name, noting(getattr(torch.Tensor, name)))
    module = net()
    plain = torch.optim.AdamW(module.parameters(), fused=True)
    run = trainer(
        module,
        optimizer=OptimizerAdapter(plain, module, clip=1.0),
        metrics=(Throughput(),),
        average=0.9,
        accumulate=2,
        log_every=5,
        steps=10,
    )
    with Reads():
        run.run()
    assert set(read) == {5, 10}


@pytest.mark.parametrize("k", [1, 2])
def test_of_the_outputs_only_numbers_outlive_a_step(k):
    """The scores of a large vocabulary would not fit into memory twice."""
    scores, alive = [], []

    def step(module, batch):
        if len(scores) % k == 0:
            alive.append(sum(each() is not None for each in scores))
        found = module(batch[0])
        scores.append(weakref.ref(found))
        return {"loss": (found - batch[1]).square().mean(), "scores": found}

    trainer(step=step, steps=6, accumulate=k, log_every=4, metrics=(Throughput(),)).run()
    assert alive == [0] * 6


def test_statistics_of_norms_are_averaged_with_the_weights():
    norm = nn.BatchNorm1d(4, affine=False)
    module = nn.Sequential(norm, nn.Linear(4, 1))
    source = TensorBatches((torch.randn(32, 4) + 5,), size=8)
    live, shadow = torch.zeros(4), torch.zeros(4)

    def loss(module, batch):
        live.lerp_(batch[0].mean(0), 0.1)
        shadow.lerp_(live, 0.2)
        return module(batch[0]).square().mean()

    optimizer = torch.optim.SGD(module.parameters(), lr=0.01)
    run = Trainer(module, loss, source, optimizer, steps=6, average=0.8, show=False)
    run.run()
    with run.averaged():
        torch.testing.assert_close(norm.running_mean, shadow)
    torch.testing.assert_close(norm.running_mean, live)


def test_evaluation_uses_the_average_and_all_items(tmp_path):
    x, y = data(20)
    source = TensorBatches((x, y), 8, shuffle=False, endless=False)
    run = trainer(
        folder=tmp_path, average=0.7, evaluation=Evaluation(source, every=4), steps=10
    )
    values = run.run().values
    with run.averaged(), torch.no_grad():
        # The loss of each batch counts once: 8, 8 and 4 rows.
        losses = [loss(run.module, source.batch(i, 0, 1)).item() for i in range(3)]
    assert values["valid/loss"] == pytest.approx(sum(losses) / 3, rel=1e-12)
    evaluated = [e["step"] for e in read_events(tmp_path) if e["event"] == "evaluate"]
    assert evaluated == [4, 8, 10]


def test_early_stopping_ends_a_run_and_it_stays_ended(tmp_path):
    x, y = data(16)
    evaluation = Evaluation(TensorBatches((x, -y), 16, endless=False), every=2)
    rule = EarlyStopping("valid/loss", patience=2, warmup=3)

    def run(**options):
        return trainer(
            folder=tmp_path, steps=60, evaluation=evaluation, early_stopping=rule
        ).run(**options)

    first = run()
    assert first.why == "early stopping"
    assert first.step == 8  # the first evaluation is the best, and three are a warm-up
    again = run(resume=True)
    assert (again.why, again.step) == ("early stopping", 8)


@pytest.mark.parametrize("rule", [None, EarlyStopping("valid/loss", patience=4)])
def test_a_run_that_ended_early_continues_under_another_rule(tmp_path, rule):
    x, y = data(16)
    evaluation = Evaluation(TensorBatches((x, -y), 16, endless=False), every=2)
    options = {"folder": tmp_path, "steps": 60, "evaluation": evaluation}
    trainer(early_stopping=EarlyStopping("valid/loss", patience=2), **options).run()
    again = trainer(early_stopping=rule, **options).run(resume=True)
    assert (again.why, again.step) == (
        ("finished", 60) if rule is None else ("early stopping", 10)
    )


@pytest.mark.parametrize("better", ["lowest", "highest"])
def test_early_stopping_follows_its_rules(better):
    sign = 1 if better == "lowest" else -1
    rule = EarlyStopping("m", patience=2, warmup=4, better=better)
    state, stops = None, []
    for value in (5, 4, 4, 4, 4, 3, 3, 3):
        state, stop = rule.after(state, {"m": sign * value})
        stops.append(stop)
    assert stops == [False, False, False, False, True, False, False, True]
    # NaN never improves, and a missing metric changes nothing.
    assert rule.after(state, {"m": math.nan})[0]["best_at"] == state["best_at"]
    assert rule.after(state, {}) == (state, False)


class Poisoned:
    """Batches of which some give a loss that is not finite."""

    def __init__(self, bad: set[int], factor: float = math.nan):
        self.bad, self.factor = bad, factor
        self.source = TensorBatches(data(), 4, seed=1)

    def batch(self, index, rank, ranks):
        x, y = self.source.batch(index, rank, ranks)
        return (x, y * self.factor) if index in self.bad else (x, y)


def test_a_loss_that_is_not_finite_is_named():
    run = trainer(source=Poisoned({7}), accumulate=2, log_every=5)
    with pytest.raises(
        UnstableError, match=r"loss is nan in step 4, batch 7;.* group `all`"
    ) as e:
        run.run()
    assert e.value.step == 4


def test_the_group_with_the_first_bad_gradient_is_named():
    module = net()

    class Broken(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):  # pyright: ignore[reportIncompatibleMethodOverride]
            return grad * math.inf

    def step(module, batch):
        hidden = module[1](module[0](batch[0]))
        if run.step == 3:
            hidden = Broken.apply(hidden)
        return (module[3](hidden) - batch[1]).square().mean()

    groups = [
        {"params": module.get_submodule("3").parameters(), "name": "head"},
        {"params": module.get_submodule("0").parameters(), "name": "body"},
    ]
    run = trainer(module, step=step, optimizer=torch.optim.SGD(groups, lr=0.1), log_every=10)
    with pytest.raises(
        UnstableError, match=r"gradient is (inf|nan) in step 4, batch 3.*`body`"
    ):
        run.run()


def test_a_group_may_be_without_a_gradient_in_some_steps(tmp_path):
    module = nn.ModuleDict({"one": nn.Linear(6, 2), "two": nn.Linear(6, 2)}).double()
    groups = [{"params": each.parameters(), "name": name} for name, each in module.items()]

    def step(module, batch):
        part = module["two" if run.step % 3 == 2 else "one"]
        return (part(batch[0]) - batch[1]).square().mean()

    run = trainer(module, step=step, optimizer=torch.optim.SGD(groups, lr=0.1), folder=tmp_path,
                  log_every=4, steps=8)  # fmt: skip
    run.run()
    first = next(e["values"] for e in read_events(tmp_path) if e["event"] == "train")
    assert first["train/gradient norm, one"] > 0
    assert first["train/gradient norm, two"] > 0


def test_a_bad_batch_is_left_out_after_a_rollback(tmp_path):
    run = trainer(
        source=Poisoned({5}),
        folder=tmp_path,
        guard=LossGuard(rollback=True),
        log_every=4,
        steps=12,
    )
    run.run()

    class Without:
        def batch(self, index, rank, ranks):
            return Poisoned(set()).batch(index + (index >= 5), rank, ranks)

    right = trainer(source=Without(), steps=12)
    right.run()
    assert torch.equal(weights(run.module), weights(right.module))
    backs = [e for e in read_events(tmp_path) if e["event"] == "rollback"]
    assert [(e["step"], e["batches"]) for e in backs] == [(0, [5])]


def test_a_rollback_without_checkpoints_says_so(tmp_path):
    class Emptied(Poisoned):
        def batch(self, index, rank, ranks):
            if index == 5:
                shutil.rmtree(tmp_path / "checkpoints")
            return super().batch(index, rank, ranks)

    # In the background, step 0 could still be written when the folder is removed.
    run = trainer(
        source=Emptied({5}),
        folder=tmp_path,
        guard=LossGuard(rollback=True),
        saving=Saving(asynchronous=False),
    )
    with pytest.raises(StoreError, match="there is no checkpoint in"):
        run.run()


def test_a_spike_is_found_by_the_median():
    guard = LossGuard(spike=5.0, window=8)
    run = trainer(source=Poisoned({9}, factor=30.0), guard=guard, steps=20)
    with pytest.raises(UnstableError, match=r"step 10, batch 9"):
        run.run()
    # Before half a window is known, and without a guard for spikes, it passes.
    trainer(source=Poisoned({3}, factor=30.0), guard=guard, steps=4).run()
    trainer(source=Poisoned({9}, factor=30.0), steps=20).run()


def test_too_many_bad_batches_end_a_run(tmp_path):
    run = trainer(
        source=Poisoned({2, 3, 4}), folder=tmp_path, guard=LossGuard(rollback=True, most=2)
    )
    with pytest.raises(UnstableError, match="2 batches were left out already"):
        run.run()


def test_bfloat16_computes_in_it():
    kinds = []

    def step(module, batch):
        out = module(batch[0].float())
        kinds.append(out.dtype)
        return (out.float() - batch[1]).square().mean()

    run = trainer(net(torch.float32), step=step, precision="bfloat16", steps=2)
    run.run()
    assert set(kinds) == {torch.bfloat16}
    assert next(run.module.parameters()).dtype == torch.float32


@pytest.mark.compiles
@pytest.mark.long
def test_a_compiled_module_learns_the_same():
    plain, compiled = trainer(steps=4), trainer(steps=4, compiled=True)
    for run in (plain, compiled):
        run.run()
    torch.testing.assert_close(weights(plain.module), weights(compiled.module))


def test_graphs_are_one_mode_of_the_compiler(monkeypatch):
    asked = []

    def compile(module, mode=None):
        asked.append(mode)
        return module

    monkeypatch.setattr(torch, "compile", compile)
    for compiled in (False, True, "graphs"):
        trainer(steps=1, compiled=compiled)
    assert asked == [None, "reduce-overhead"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"compiled": "graph"}, "`compiled` is 'graph'; expected True, False or graphs"),
        ({"compiled": "graphs", "accumulate": 2}, "2 micro-batches in a step and 1 ranks"),
    ],
)
def test_ways_to_compile_that_cannot_work_are_refused(options, said):
    with pytest.raises(ArgumentError, match=said):
        trainer(steps=1, **options)


def test_a_schedule_is_applied_before_every_step():
    module = net()
    optimizer = OptimizerAdapter(sgd(module), module, rate=lambda step: 0.1 / (1 + step))
    right = net()
    plain = sgd(right)
    source = TensorBatches(data(), 8, seed=1)
    for step in range(6):
        plain.param_groups[0]["lr"] = 0.1 / (1 + step)
        loss(right, source.batch(step, 0, 1)).backward()
        plain.step()
        plain.zero_grad()
    values = trainer(module, optimizer=optimizer, steps=6).run().values
    assert torch.equal(weights(module), weights(right))
    assert values["train/rate, all"] == 0.1 / 6


@pytest.mark.parametrize("own", [False, True])
def test_gradients_are_dropped_as_the_optimizer_does_it(own):
    class Counting(torch.optim.SGD):
        calls = 0

    def zero_grad(self, set_to_none: bool = True) -> None:
        Counting.calls += 1
        torch.optim.SGD.zero_grad(self, set_to_none)

    if own:
        Counting.zero_grad = zero_grad
    module = net()
    optimizer = OptimizerAdapter(Counting(module.parameters(), lr=0.1), module)
    loss(module, data()).backward()
    optimizer.zero_grad()
    assert all(p.grad is None for p in module.parameters())
    assert Counting.calls == own


def test_clipping_is_that_of_torch():
    module, right = net(), net()
    optimizer = OptimizerAdapter(sgd(module), module, clip=0.05)
    plain = sgd(right)
    source = TensorBatches(data(), 8, seed=1)
    for step in range(6):
        loss(right, source.batch(step, 0, 1)).backward()
        nn.utils.clip_grad_norm_(right.parameters(), 0.05)
        plain.step()
        plain.zero_grad()
    trainer(module, optimizer=optimizer, steps=6).run()
    torch.testing.assert_close(weights(module), weights(right), rtol=1e-12, atol=0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"steps": 0}, "`steps` is 0"),
        ({"precision": "half"}, "`precision` is 'half'"),
        ({"sharding": "both"}, "`sharding` is 'both'"),
        ({"average": 1.5}, "`average` is 1.5"),
        ({"guard": LossGuard(rollback=True)}, "needs a `folder`"),
        ({"optimizer": 3}, "`optimizer` is 3"),
        ({"optimizer": torch.optim.SGD}, "expected the result of `groups`"),
        ({"source": [1, 2]}, "`batches` is a list"),
    ],
)
def test_wrong_arguments_are_said(options, message):
    with pytest.raises(ArgumentError, match=message):
        trainer(**options)


def test_a_parameter_of_another_module_is_said():
    with pytest.raises(ArgumentError, match=r"parameter 0 of group `all`.*lambda module"):
        trainer(optimizer=sgd(net()))


def test_a_step_function_that_returns_no_loss_is_said():
    with pytest.raises(ArgumentError, match='a dict with "loss"'):
        trainer(step=lambda module, batch: {"error": 1}).run()
    with pytest.raises(ArgumentError, match="`accuracy` needs `scores`"):
        trainer(metrics=(Accuracy(),)).run()


def test_a_trainer_needs_no_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Trainer(net(), loss, TensorBatches(data(), 8), sgd, steps=3).run()
    assert list(tmp_path.iterdir()) == []


def test_a_loader_of_documents_is_a_stream_of_batches(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"text": "some bytes to learn from"}\n' * 50)

    def run(steps, resume):
        torch.manual_seed(0)
        net = nn.Sequential(nn.Embedding(256, 8), nn.Linear(8, 256))
        rows = PackedBatches(
            Shards([tmp_path / "a.jsonl"]),
            lambda texts: [list(text.encode()) for text in texts],
            batch=2, length=16, start=[0],
        )  # fmt: skip

        def loss(module, batch):
            return nn.functional.cross_entropy(
                module(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten()
            )

        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        made = Trainer(
            net,
            loss,
            rows,
            optimizer,
            steps=steps,
            folder=tmp_path / f"run{resume}",
            show=False,
        )
        made.run(resume="auto" if resume else False)
        rows.close()
        return net[1].weight.detach().clone()

    run(5, True)
    assert torch.equal(run(9, True), run(9, False))


def test_a_loss_of_one_element_and_of_more():
    def trained(shape):
        net = nn.Linear(2, 1)
        source = TensorBatches((torch.ones(8, 2),), size=4)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

        def loss(module, batch):
            return module(batch[0]).square().mean().expand(shape)

        return Trainer(net, loss, source, optimizer, steps=3, log_every=1, show=False).run()

    assert trained((1,)).step == 3
    with pytest.raises(ArgumentError, match=r"shape \[2\]"):
        trained((2,))


def test_a_misspelled_resume_is_refused(tmp_path):
    net = nn.Linear(2, 1)
    source = TensorBatches((torch.ones(8, 2),), size=4)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    def loss(module, batch):
        return module(batch[0]).mean()

    made = Trainer(net, loss, source, optimizer, steps=1, folder=tmp_path, show=False)
    with pytest.raises(ArgumentError, match="'Auto'"):
        made.run(resume="Auto")  # pyright: ignore[reportArgumentType]


def test_early_stopping_passes_over_a_first_value_that_is_no_number():
    rule, state = EarlyStopping("v", patience=2), None
    for value in (float("nan"), 1.0, 0.5, 0.25):
        state, stop = rule.after(state, {"v": value})
        assert not stop
    assert state is not None and state["best"] == 0.25


def test_frozen_norms_stay_in_evaluation():
    net = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
    net[1].eval()
    before = net[1].running_mean.clone()
    source = TensorBatches((torch.randn(32, 4) + 5,), size=8)
    checked = TensorBatches((torch.randn(8, 4),), size=8, shuffle=False, endless=False)

    def loss(module, batch):
        return module(batch[0]).square().mean()

    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    evaluation = Evaluation(checked, every=2)
    Trainer(net, loss, source, optimizer, steps=4, evaluation=evaluation, show=False).run()
    assert torch.equal(net[1].running_mean, before)
    assert net[0].training and not net[1].training


@pytest.mark.parametrize("best", ["valid/los", "loss", "train/accuracy"])
def test_a_best_value_that_there_never_is_is_refused(tmp_path, best):
    source = TensorBatches(data(), 8, endless=False)
    options = {"folder": tmp_path, "evaluation": Evaluation(source, every=2)}
    with pytest.raises(ArgumentError, match=r"names no value of this run.*valid/loss"):
        trainer(saving=Saving(best=best), **options)
    with pytest.raises(ArgumentError, match=r"watches `valid/acc`, which is not evaluated"):
        trainer(early_stopping=EarlyStopping("valid/acc"), **options)


def test_endless_batches_are_not_evaluated():
    with pytest.raises(ArgumentError, match="would count twice"):
        Evaluation(TensorBatches(data(), 7), every=2)


def test_a_trainer_runs_once(tmp_path):
    made = trainer(steps=2, folder=tmp_path)
    made.run()
    with pytest.raises(ArgumentError, match="has run already, to step 2"):
        made.run()
    assert not (tmp_path / "earlier-1").exists()


def test_a_stream_that_ends_is_named(tmp_path):
    (tmp_path / "a.txt").write_text("abcdefgh" * 4)
    source = PackedBatches(
        Shards([tmp_path]),
        lambda texts: [list(text.encode()) for text in texts],
        batch=1, length=8, start=[0], epochs=1,
    )  # fmt: skip
    with pytest.raises(ArgumentError, match=r"batches ended after \d+, .*`epochs=None`"):
        trainer(
            nn.Embedding(256, 1),
            step=lambda module, batch: module(batch).mean(),
            source=source,
            steps=20,
        ).run()
