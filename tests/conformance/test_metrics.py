"""Every metric that `hotgrid.train` exports, through the same battery.

A metric enters by being exported. One that needs arguments is listed in `MADE_BY_HAND`.
"""

import inspect
import itertools
import json
import math

import pytest
import torch
from hypothesis import given, strategies as st

import hotgrid.train
from hotgrid.train import Metric, Seen, Window, metric_from_json
from hotgrid.train._metrics import Ledger

MADE_BY_HAND = {"ModelFlops": lambda kind: kind(flops=6e6)}
KINDS = sorted(
    (
        each
        for each in vars(hotgrid.train).values()
        if inspect.isclass(each) and issubclass(each, Metric) and not inspect.isabstract(each)
    ),
    key=lambda each: each.__name__,
)
METRICS = [MADE_BY_HAND.get(kind.__name__, lambda kind: kind())(kind) for kind in KINDS]
WINDOW = Window(seconds=0.5, ranks=1, device="NVIDIA H200", precision="bfloat16")
each_metric = pytest.mark.parametrize("metric", METRICS, ids=lambda m: type(m).__name__)


def test_all_are_enrolled():
    names = {kind.__name__ for kind in KINDS}
    assert {"Loss", "BitsPerByte", "Accuracy", "TopAccuracy", "Throughput"} <= names
    assert {"ModelFlops", "GradientNorm"} <= names


def items(count: int, seed: int = 0) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(count, 7, generator=generator, dtype=torch.float64)
    return {
        "scores": scores,
        "targets": torch.randint(0, 7, (count,), generator=generator),
        "losses": torch.rand(count, generator=generator, dtype=torch.float64),
        "bytes": torch.randint(1, 9, (count,), generator=generator),
    }


def seen(data: dict[str, torch.Tensor]) -> Seen:
    """What a step function would return for some items, and the norm of a gradient."""
    count = len(data["losses"])
    loss = data["losses"].mean() if count else torch.zeros((), dtype=torch.float64)
    outputs = {
        "loss": loss,
        "count": float(count),
        "bytes": data["bytes"].sum(),
        "scores": data["scores"],
        "targets": data["targets"],
    }
    return Seen(outputs, data, {"all": data["losses"].sum()})


def part(data: dict[str, torch.Tensor], a: int, b: int) -> dict[str, torch.Tensor]:
    return {name: x[a:b] for name, x in data.items()}


def show(ledger: Ledger, metric: Metric, given_: Seen) -> None:
    """Add a row, as a step does."""
    for sums, rows in ledger.per_step if metric.per == "step" else ledger.per_batch:
        rows.append(sums(given_))


def value(metric: Metric, ranks: list[list[dict[str, torch.Tensor]]]) -> float | None:
    """The value of the micro-batches of several ranks."""
    sums = []
    for batches in ranks:
        ledger = Ledger([metric])
        for batch in batches:
            show(ledger, metric, seen(batch))
        sums.append(ledger.sums())
    return Ledger([metric]).values(sums, WINDOW)[metric.name]


@each_metric
@given(cuts=st.lists(st.integers(0, 40), max_size=6), ranks=st.integers(1, 3))
def test_parts_over_batches_and_ranks_are_the_whole(metric: Metric, cuts, ranks):
    data = items(40)
    places = [0, *sorted(cuts), 40]
    parts = [part(data, a, b) for a, b in itertools.pairwise(places)]
    if metric.per == "step":
        # A norm belongs to a step: the mean over steps is what parts have in common.
        found = value(metric, [parts[rank::ranks] for rank in range(ranks)])
        expected = math.fsum(p["losses"].sum().item() for p in parts) / len(parts)
        assert found == pytest.approx(expected, rel=1e-12)
        return
    whole = value(metric, [[data]])
    found = value(metric, [parts[rank::ranks] for rank in range(ranks)])
    assert whole is not None
    assert found == pytest.approx(whole, rel=1e-12)


@each_metric
def test_it_is_json(metric: Metric):
    text = json.dumps(metric.to_json())
    assert metric_from_json(json.loads(text)) == metric
    ledger = Ledger([metric])
    show(ledger, metric, seen(items(9)))
    state = json.loads(json.dumps(ledger.state()))
    again = Ledger([metric])
    again.load([state])
    assert again.sums() == ledger.sums()


@each_metric
def test_fetching_more_often_changes_no_bit(metric: Metric):
    often, once = Ledger([metric]), Ledger([metric])
    for seed in range(7):
        for ledger in (often, once):
            show(ledger, metric, seen(items(5, seed)))
        often.fetch()
    assert often.sums() == once.sums()


@each_metric
def test_it_has_a_name_and_nothing_gives_no_value(metric: Metric):
    assert metric.name
    assert metric.better in ("lowest", "highest", None)
    assert value(metric, [[], []]) is None


@each_metric
def test_numbers_stay_on_their_device(metric: Metric):
    """Nothing is read by the host before the value is shown."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Reads(TorchDispatchMode):
        count = 0

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.count += "_local_scalar_dense" in str(func)
            return func(*args, **(kwargs or {}))

    ledger, given_ = Ledger([metric]), seen(items(8))
    with Reads() as reads:
        show(ledger, metric, given_)
    assert reads.count == 0
