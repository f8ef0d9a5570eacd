"""The competition: keys, scores, plans, early ends, wrong candidates, threads, settings."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, strategies as st
from torch import Tensor

from hotgrid.config import override
from hotgrid.config.sections import Autotune
from hotgrid.errors import ConfigError, KernelError
from hotgrid.kernels import OPS
from hotgrid.kernels.tune import (
    NATIVE,
    TENSOR,
    TRITON,
    Call,
    Candidate,
    Group,
    Timing,
    Tuned,
    Work,
    _dispatch,
    bucket,
)
from hotgrid.kernels.tune._measure._sampling import timed
from hotgrid.kernels.tune._op import batches, fitting
from hotgrid.kernels.tune._trials import _trial
from hotgrid.kernels.tune._trials._trial import compete

TOPK = OPS["topk"].op

ARGUMENTS = (torch.tensor([[3.0, 1.0, 2.0], [4.0, 6.0, 5.0]]), 2, 1, True, True)
CALL = TOPK.describe(*ARGUMENTS)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[dict[str, float]], None]:
    """Replace the clock: a candidate takes the seconds that are written beside its name."""

    def install(seconds: dict[str, float]) -> None:
        now: list[str] = []

        def measured(run: Callable[[], object]) -> float:
            now.clear()
            run()
            return seconds[now[0]]

        monkeypatch.setattr(_trial, "clock_of", lambda device: measured)
        install.now = now  # pyright: ignore[reportFunctionMemberAccess]

    return install


def entrant(name: str, install: Any, result: Any = None, **more: Any) -> Candidate:
    """A candidate that reports its name to the clock; correct by default."""

    def run(*arguments: Any) -> Any:
        if hasattr(install, "now"):
            install.now.append(name)
        if isinstance(result, Exception):
            raise result
        return TOPK.reference(*arguments) if result is None else result

    return Candidate(name=name, function=run, **more)


@given(st.integers(1, 2**40), st.sampled_from(["minimal", "balanced", "extensive"]))
def test_a_bucket_holds_its_sizes(n: int, level: Any):
    found = bucket(n, level)
    assert found >= n
    assert found <= 2.5 * n + 1
    assert bucket(found, level) == found


def test_levels_distinguish_sizes_more_and_more_finely():
    kinds = [len({bucket(n, level) for n in range(1, 1000)}) for level in
             ("minimal", "balanced", "extensive", "full")]  # fmt: skip
    assert kinds == sorted(set(kinds))
    assert kinds[-1] == 999


def test_a_key_shows_what_the_call_is():
    assert CALL.key("balanced") == (
        "topk float32 cpu rows outer=2 n=4 inner=1 k=2 largest=True sorted=True"
    )
    assert TOPK.describe(ARGUMENTS[0].mT, 2, 1, True, True).layout == "strided"
    assert TOPK.describe(ARGUMENTS[0], 2, 0, True, True).layout == "columns"


def test_the_score_is_in_seconds_and_punishes_spread():
    steady, unsteady = Timing.of([2.0] * 10), Timing.of([2.0] * 6 + [8.0] * 4)
    assert steady.score == 2.0
    assert unsteady.deviation == pytest.approx(6.0 / 1.349)
    assert unsteady.score == pytest.approx(2.0 * (1 + unsteady.deviation / 2.0))
    scaled = Timing.of([2e-6] * 6 + [8e-6] * 4)
    assert scaled.score == pytest.approx(unsteady.score * 1e-6)
    assert Timing.of([3.0]).score == pytest.approx(3.0)


def test_quartiles_are_a_deviation_where_samples_are_normal():
    draw = torch.Generator().manual_seed(0)
    samples = (10 + torch.randn(4000, generator=draw, dtype=torch.float64)).tolist()
    assert Timing.of(samples).deviation == pytest.approx(1.0, rel=0.05)


def test_one_outlier_does_not_decide():
    disturbed = Timing.of(
        [196.0, 198.0, 199.0, 200.0, 200.0, 200.0, 201.0, 202.0, 203.0, 1500.0]
    )
    slower = Timing.of([351.0] * 10)
    assert disturbed.score < 205 < slower.score


def test_warm_ups_do_not_count_and_hopeless_ones_are_left_alone():
    seconds = iter([9.0, 9.0, 9.0, *[1.0] * 10])
    assert timed(lambda: None, lambda run: next(seconds), warmups=3, samples=10).mean == 1.0
    seconds = iter([6.0])
    given_up = timed(lambda: None, lambda run: next(seconds), warmups=3, samples=10, best=1.0)
    assert (given_up.samples, given_up.minimum) == (1, 6.0)


def test_the_most_promising_come_first_and_negative_ones_never():
    make = lambda name, **more: Candidate(name=name, function=print, **more)
    all_of_them = [
        make("plain"),
        make("native", group=NATIVE),
        make("better", group=NATIVE, priority=lambda call: call.sizes["k"]),
        make("triton", group=TRITON),
        make("never", priority=-1),
        make("cannot", applies=lambda call: False),
        make("plain too", group=TENSOR),
        make("closed", group=Group("closed", -1)),
    ]
    lots = [[each.name for each in lot] for lot in batches(all_of_them, CALL)]
    assert lots == [["better"], ["native"], ["plain", "plain too"]]
    assert [each.name for each in fitting(all_of_them, CALL)] == [
        name for lot in lots for name in lot
    ]


@pytest.mark.parametrize(
    ("level", "tried"),
    [
        ("minimal", ["first"]),
        ("balanced", ["first", "slower"]),
        ("extensive", ["first", "slower", "last"]),
        ("full", ["first", "slower", "last"]),
    ],
)
def test_levels_try_more_and_more(level: str, tried: list[str], clock: Any):
    clock({"first": 1.0, "slower": 2.0, "last": 0.5})
    op = TOPK.with_candidates(
        entrant("last", clock),
        entrant("slower", clock, priority=1),
        entrant("first", clock, priority=2),
    )
    with override({"autotune.level": level}):
        ranking = Tuned(op).ranking_for(*ARGUMENTS)
    assert {each.name for each in ranking.outcomes} == set(tried)
    assert ranking.winner.name == ("last" if "last" in tried else "first")


def test_the_fastest_wins_whatever_the_order(clock: Any):
    clock({"a": 3.0, "b": 1.0, "c": 2.0})
    op = TOPK.with_candidates(*(entrant(name, clock) for name in "abc"))
    ranking = Tuned(op).ranking_for(*ARGUMENTS)
    assert [each.name for each in ranking.outcomes] == ["b", "c", "a"]
    assert Tuned(op).candidate_for(*ARGUMENTS).name == "b"


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        (TOPK.reference(-ARGUMENTS[0], *ARGUMENTS[1:]), "disagrees with the reference"),
        ((torch.zeros(1), torch.zeros(1)), "should be torch.float32 (2, 2)"),
        (RuntimeError("no\nsuch luck"), "RuntimeError: no such luck"),
    ],
)
def test_a_wrong_candidate_never_wins_and_is_logged(
    result: Any, reason: str, clock: Any, capsys: pytest.CaptureFixture[str]
):
    clock({"wrong": 1e-9, "right": 1.0})
    wrong = entrant("wrong", clock, result, priority=3)
    tuned = Tuned(TOPK.with_candidates(wrong, entrant("right", clock)))
    values, indices = tuned(*ARGUMENTS)
    assert tuned.op.compare(TOPK.reference(*ARGUMENTS), (values, indices), *ARGUMENTS) is None
    assert tuned.candidate_for(*ARGUMENTS).name == "right"
    (line,) = capsys.readouterr().err.splitlines()
    assert "hotgrid.autotune warning: topk float32 cpu rows" in line
    assert "candidate `wrong` cannot win: " in line
    assert reason in line


def test_when_all_fail_the_error_shows_each_reason(clock: Any):
    clock({})
    op = TOPK.with_candidates(
        entrant("a", clock, ValueError("bad day")), entrant("b", clock, ValueError("worse"))
    )
    with pytest.raises(KernelError, match=r"`a` ValueError: bad day; `b` ValueError: worse"):
        Tuned(op)(*ARGUMENTS)


def test_a_candidate_at_the_limit_ends_the_search(clock: Any, monkeypatch: pytest.MonkeyPatch):
    clock({"near": 1.05, "nearer": 1.0, "far": 2.0})
    monkeypatch.setattr(_trial, "limit_of", lambda work, call: 1.0)
    op = TOPK.with_candidates(*(entrant(name, clock) for name in ("far", "near", "nearer")))
    ask = lambda level: Tuned(op).ranking_for(*ARGUMENTS)
    with override({"autotune.level": "extensive"}):
        assert [each.name for each in ask("extensive").outcomes] == ["near", "far"]
    with override({"autotune.level": "full"}):
        assert [each.name for each in ask("full").outcomes] == ["nearer", "near", "far"]
    with override({"autotune.stop_at_roofline": 0.4}):
        assert [each.name for each in ask("balanced").outcomes] == ["far"]


def test_the_limit_is_the_longer_of_moving_and_computing(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(_trial, "matmul_peak", lambda device, dtype: 1e9)
    call = Call(op="x", dtype="float32")
    assert _trial.limit_of(Work(bytes=1e10), call) == 1.0  # the machine here copies 1e10
    assert _trial.limit_of(Work(bytes=1e10, flops=3e9), call) == 3.0
    assert _trial.limit_of(Work(bytes=1000, flops=10), call) == 0.0


def test_a_trial_times_what_later_calls_run(clock: Any):
    """A candidate may have a faster function for the calls after the first."""
    made: list[Any] = []

    def ready(*arguments: Any) -> Any:
        made.append(arguments[1:])

        def run(*arguments: Any) -> Any:
            clock.now.append("quick")
            return TOPK.reference(*arguments)

        return run

    entrants = [
        entrant("long", clock, ready=ready),
        entrant("none", clock, ready=lambda *arguments: None),
        entrant("plain", clock),
    ]
    clock({"long": 9.0, "none": 3.0, "quick": 1.0, "plain": 2.0})
    ranking = compete(TOPK.with_candidates(*entrants), CALL, ARGUMENTS, Autotune(level="full"))
    assert [(each.name, each.minimum) for each in ranking.outcomes] == [
        ("long", 1.0), ("plain", 2.0), ("none", 3.0)
    ]  # fmt: skip
    assert made == [ARGUMENTS[1:]]


def test_a_ready_function_that_differs_never_wins(clock: Any):
    wrong = TOPK.reference(ARGUMENTS[0] + 1, *ARGUMENTS[1:])
    entrants = [
        entrant("other", clock, ready=lambda *arguments: lambda *given: wrong),
        entrant("plain", clock),
    ]
    clock({"other": 1.0, "plain": 2.0})
    ranking = compete(TOPK.with_candidates(*entrants), CALL, ARGUMENTS, Autotune(level="full"))
    assert [(each.name, each.able) for each in ranking.outcomes] == [
        ("plain", True), ("other", False)
    ]  # fmt: skip
    assert "its `ready` function differs" in ranking.outcomes[1].problem


def test_a_trial_takes_arguments_in_turn(clock: Any, monkeypatch: pytest.MonkeyPatch):
    used: list[int] = []

    def run(x: Tensor, *more: Any) -> Any:
        clock.now.append("one")
        used.append(x.data_ptr())
        return TOPK.reference(x, *more)

    clock({"one": 1.0})
    monkeypatch.setattr(_trial, "_held", lambda device: 24)
    op = TOPK.with_candidates(Candidate(name="one", function=run))
    compete(op, CALL, ARGUMENTS, Autotune())
    first, second, third, *rest = used[-9:]
    assert len({first, second, third}) == 3
    assert rest == [first, second, third, first, second, third]


def test_one_candidate_is_not_timed(clock: Any):
    clock({})
    only = entrant("only", clock)
    assert Tuned(TOPK.with_candidates(only))(*ARGUMENTS)[1].tolist() == [[0, 2], [1, 2]]


def test_no_candidate_is_an_error():
    closed = Candidate(name="closed", function=print, applies=lambda call: False)
    with pytest.raises(KernelError, match="no candidate of `topk` applies to topk float32"):
        Tuned(TOPK.with_candidates(closed))(*ARGUMENTS)


def test_a_call_is_tuned_once_and_then_looked_up():
    runs: list[str] = []
    count = lambda name: Candidate(
        name=name, function=lambda *a: (runs.append(name), TOPK.reference(*a))[1]
    )
    tuned = Tuned(TOPK.with_candidates(count("a"), count("b")))
    tuned(*ARGUMENTS)
    before = len(runs)
    for _ in range(5):
        tuned(*ARGUMENTS)
    assert len(runs) == before + 5
    # Another size of the same bucket is looked up as well: 4 stands for 3.
    tuned(torch.randn(2, 4), 2, 1, True, True)
    assert len(runs) == before + 6
    tuned(torch.randn(2, 5), 2, 1, True, True)
    assert len(runs) > before + 7


def test_a_winner_that_cannot_compute_a_fellow_of_its_bucket_gives_way(clock: Any):
    clock({"even": 1.0, "any": 2.0})
    op = TOPK.with_candidates(
        entrant("even", clock, applies=lambda call: call.sizes["n"] % 2 == 0),
        entrant("any", clock),
        entrant("odd", clock, applies=lambda call: call.sizes["n"] % 2 == 1),
    )
    clock({"even": 1.0, "any": 2.0, "odd": 0.5})
    tuned = Tuned(op)
    assert tuned.candidate_for(torch.randn(2, 4), 2, 1, True, True).name == "even"
    assert tuned.candidate_for(torch.randn(2, 3), 2, 1, True, True).name == "any"


def test_a_candidate_can_be_named_by_hand(clock: Any):
    clock({"a": 1.0, "b": 2.0})
    op = TOPK.with_candidates(
        entrant("a", clock),
        entrant("b", clock),
        entrant("c", clock, applies=lambda call: False),
    )
    tuned = Tuned(op)
    assert tuned.candidate_for(*ARGUMENTS).name == "a"
    with override({"kernels.choose": ["other=x", "topk=b"]}):
        assert tuned.candidate_for(*ARGUMENTS).name == "b"
        tuned(*ARGUMENTS)
        assert clock.now[-1] == "b"
    tuned(*ARGUMENTS)
    assert clock.now[-1] == "a"
    for name, text in (("c", "which does not apply"), ("bb", "did you mean `b`")):
        wrong = override({"kernels.choose": [f"topk={name}"]})
        with wrong, pytest.raises(ConfigError, match=text):
            tuned(*ARGUMENTS)


@pytest.mark.parametrize("bad", ["topk", ["topk"], ["=sort"], ["topk=Sort"], [3]])
def test_a_choice_is_an_op_and_a_candidate(bad: Any):
    with (
        pytest.raises(ConfigError, match=r"kernels\.choose"),
        override({"kernels.choose": bad}),
    ):
        pass


def test_while_a_cuda_graph_is_recorded_nothing_is_timed(
    clock: Any, monkeypatch: pytest.MonkeyPatch
):
    clock({"a": 1.0, "b": 2.0})
    op = TOPK.with_candidates(entrant("a", clock), entrant("b", clock, priority=1))
    tuned = Tuned(op)
    monkeypatch.setattr(_dispatch, "_recorded", lambda arguments: True)
    tuned(*ARGUMENTS)
    assert clock.now == ["b"]  # the most promising one, and only for this once
    monkeypatch.undo()
    clock({"a": 1.0, "b": 2.0})
    assert tuned.candidate_for(*ARGUMENTS).name == "a"
    tuned(*ARGUMENTS)
    assert clock.now[-1] == "a"


def test_in_a_cuda_graph_the_candidate_with_the_shortest_kernels_is_taken(
    clock: Any, monkeypatch: pytest.MonkeyPatch
):
    clock({"a": 1.0, "b": 2.0})
    monkeypatch.setattr(_trial, "kernel_seconds", lambda run, device: kernels[clock.now[-1]])
    kernels = {"a": 0.5, "b": 0.25}
    tuned = Tuned(TOPK.with_candidates(entrant("a", clock), entrant("b", clock)))
    with override({"autotune.level": "full"}):
        tuned(*ARGUMENTS)
        assert clock.now[-1] == "a"
        monkeypatch.setattr(_dispatch, "_recorded", lambda arguments: True)
        tuned(*ARGUMENTS)
        assert clock.now[-1] == "b"


def test_many_threads_tune_once_and_agree():
    trials: list[int] = []
    slow = Candidate(
        name="counted",
        function=lambda *a: (trials.append(threading.get_ident()), TOPK.reference(*a))[1],
    )
    tuned = Tuned(TOPK.with_candidates(slow, Candidate(name="other", function=TOPK.reference)))
    start = threading.Barrier(8)
    results: list[Any] = []

    def work() -> None:
        with override({"autotune.cache": "none", "kernels.choose": []}):
            start.wait()
            results.append(tuned(*ARGUMENTS)[1].tolist())

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [[[0, 2], [1, 2]]] * 8
    # Timing happens in one thread; in the others it runs at most for its own result.
    by_thread = sorted(trials.count(each) for each in set(trials))
    assert len([n for n in by_thread if n > 1]) <= 1


def test_the_memory_of_exact_calls_is_bounded(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(_dispatch, "_MOST_REMEMBERED", 3)
    tuned = Tuned(TOPK.with_candidates(Candidate(name="only", function=TOPK.reference)))
    for n in range(2, 12):
        tuned(torch.randn(n), 1, 0, True, True)
    (regime,) = tuned._regimes.values()
    assert len(regime.chosen) <= 3


@pytest.mark.parametrize("first", ["writes", "innocent"])
def test_one_that_writes_into_its_argument_is_named_and_affects_no_other(
    first: str, capsys: pytest.CaptureFixture[str]
):
    def writes(x: Tensor, *settings: Any) -> Any:
        found = TOPK.reference(x, *settings)
        x.fill_(7)
        return found

    both = [
        Candidate(name="writes", function=writes),
        Candidate(name="innocent", function=TOPK.reference),
    ]
    both = both if first == "writes" else both[::-1]
    tuned = Tuned(TOPK.with_candidates(*both))
    x = ARGUMENTS[0].clone()
    values, _ = tuned(x, *ARGUMENTS[1:])
    assert values.tolist() == [[3, 2], [6, 5]] and torch.equal(x, ARGUMENTS[0])
    outcomes = {each.name: each for each in tuned.ranking_for(x, *ARGUMENTS[1:]).outcomes}
    assert outcomes["innocent"].able
    assert outcomes["writes"].problem == "it writes into its argument `x`"
    assert "candidate `writes` cannot win: it writes into" in capsys.readouterr().err


def test_codes_of_the_caller_are_not_at_risk_in_a_trial():
    def writes(x: Tensor, *settings: Any) -> Any:
        found = TOPK.reference(x, *settings)
        x.fill_(7)
        return found

    whole = torch.tensor([[3, 1, 2]])
    both = (
        Candidate(name="writes", function=writes),
        Candidate(name="innocent", function=TOPK.reference),
    )
    Tuned(TOPK.with_candidates(*both))(whole, 2, 1, True, True)
    assert whole.tolist() == [[3, 1, 2]]
