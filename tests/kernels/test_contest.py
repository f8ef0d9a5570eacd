"""Candidates that are not functions of tensors, by a clock that tests set."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from hotgrid.config import current, override
from hotgrid.kernels.tune import Contest, TuningCache
from hotgrid.kernels.tune._trials import _contest


class Clock:
    """A clock that work sets forward; it also counts what was prepared."""

    def __init__(self) -> None:
        self.now = 0.0
        self.prepared: list[str] = []

    def of(self, run: Callable[[], object]) -> float:
        before = self.now
        run()
        return self.now - before

    def candidate(self, name: str, seconds: float) -> Callable[[], Callable[[], object]]:
        def work() -> None:
            self.now += seconds

        def prepare() -> Callable[[], object]:
            self.prepared.append(name)
            self.now += 100.0
            return work

        return prepare


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(_contest, "clock_of", lambda device: clock.of)
    monkeypatch.setattr(_contest, "_FOUND", {})
    return clock


def contest(clock: Clock, **seconds: float) -> Contest:
    return Contest(
        key="grid float32 cpu Heat size=4x4",
        device=torch.device("cpu"),
        candidates={name: clock.candidate(name, s) for name, s in seconds.items()},
        units=4,
    )


def test_the_fastest_wins_and_its_preparation_is_not_timed(clock: Clock):
    found = contest(clock, slow=8.0, fast=4.0).ranking()
    assert [(each.name, each.minimum) for each in found.outcomes] == [
        ("fast", 1.0),
        ("slow", 2.0),
    ]
    assert clock.prepared == ["slow", "fast"]


def test_a_ranking_is_found_again_in_the_process_and_in_the_file(
    clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    with override({"autotune.cache": {"file": str(tmp_path)}}):
        first = contest(clock, slow=8.0, fast=4.0).ranking()
        assert contest(clock, slow=8.0, fast=4.0).ranking() is first
        monkeypatch.setattr(_contest, "_FOUND", {})
        again = contest(clock, fast=9.0, slow=1.0)
        assert again.known() == first
        assert again.ranking() == first
        assert clock.prepared == ["slow", "fast"]
        # Another set of candidates is another question.
        assert contest(clock, slow=8.0, fast=4.0, third=1.0).ranking().winner.name == "third"  # pyright: ignore[reportOptionalMemberAccess]


def test_without_a_cache_it_is_timed_once_in_a_process(clock: Clock):
    for _ in range(3):
        contest(clock, slow=8.0, fast=4.0).ranking()
    assert clock.prepared == ["slow", "fast"]
    assert contest(clock, slow=8.0, fast=4.0).known() is not None


def failing() -> Callable[[], object]:
    raise torch.OutOfMemoryError("no memory for 3 GB")


def test_one_that_fails_is_excluded_with_its_reason(
    clock: Clock, capsys: pytest.CaptureFixture[str], tmp_path: Path
):
    both = contest(clock, fast=4.0)
    broken = Contest(
        key=both.key, device=both.device, candidates={"broken": failing, **both.candidates}
    )
    with override({"autotune.cache": {"file": str(tmp_path)}}):
        found = broken.ranking()
        assert TuningCache.at(current().autotune.cache).rankings() == [found]
    assert [each.name for each in found.outcomes] == ["fast", "broken"]
    assert found.outcomes[1].problem == "OutOfMemoryError: no memory for 3 GB"
    assert (
        "candidate `broken` cannot win: OutOfMemoryError: no memory" in capsys.readouterr().err
    )


def test_where_all_fail_nothing_is_kept(clock: Clock, tmp_path: Path):
    lost = Contest(key="grid", device=torch.device("cpu"), candidates={"broken": failing})
    with override({"autotune.cache": {"file": str(tmp_path)}}):
        assert lost.ranking().winner is None
        assert lost.known() is None
