"""Winners on disk: appended under a lock, used only where valid, never blocking."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from hotgrid.config import override
from hotgrid.kernels import OPS
from hotgrid.kernels.tune import (
    Candidate,
    Outcome,
    Ranking,
    Tuned,
    TuningCache,
    _dispatch,
    stamp,
)
from hotgrid.kernels.tune._trials import _cache

TOPK = OPS["topk"].op

ARGUMENTS = (torch.tensor([3.0, 1.0, 2.0]), 2, 0, True, True)


def ranking(key: str = "topk n=4", mark: str = "here", name: str = "fast") -> Ranking:
    best = Outcome(name=name, group="tensor", minimum=1.0, median=1.5, spread=0.1, score=1.2)
    wrong = Outcome(name="wrong", group="native", problem="it disagrees")
    return Ranking.of(key, mark, [wrong, best], 0.5)


def two() -> Tuned:
    make = lambda name: Candidate(name=name, function=TOPK.reference)
    return Tuned(TOPK.with_candidates(make("a"), make("b")))


@pytest.fixture
def cache(tmp_path: Path) -> TuningCache:
    return TuningCache(tmp_path / "deep" / "winners.jsonl")


@pytest.fixture
def no_trials(monkeypatch: pytest.MonkeyPatch):
    def refuse(*arguments: Any) -> Any:
        raise AssertionError("it was timed again")

    return lambda: monkeypatch.setattr(_dispatch, "compete", refuse)


def test_what_is_saved_is_loaded(cache: TuningCache):
    assert cache.rankings() == []
    cache.add(ranking())
    cache.add(ranking("topk n=8"))
    assert cache.rankings() == [ranking(), ranking("topk n=8")]
    assert cache.find("topk n=8", "here") == ranking("topk n=8")
    assert cache.find("topk n=8", "elsewhere") is None
    assert cache.find("topk n=9", "here") is None


def test_the_last_line_of_a_key_counts_and_none_is_rewritten(cache: TuningCache):
    cache.add(ranking())
    before = cache.path.read_bytes()
    cache.add(ranking(name="faster"))
    assert cache.find("topk n=4", "here").winner.name == "faster"
    assert cache.path.read_bytes().startswith(before)


def test_damaged_lines_are_skipped_and_reported(
    cache: TuningCache, capsys: pytest.CaptureFixture[str]
):
    cache.add(ranking())
    good = json.loads(cache.path.read_text())
    best = good["outcomes"][0]
    damaged = [
        b"\xff\xfe not text",
        b"[]",
        b"{}",
        json.dumps({**good, "version": 99}).encode(),
        json.dumps({**good, "outcomes": [{"name": 3}]}).encode(),
        json.dumps({**good, "outcomes": []}).encode(),
        json.dumps({**good, "outcomes": [{"name": "x", "group": "y"}]}).encode(),
        cache.path.read_bytes()[:40],
        b"[" * 100_000,
        json.dumps({**good, "limit": 10**400}).encode(),
        *[
            json.dumps({**good, "outcomes": [{**best, "minimum": wrong}]}).encode()
            for wrong in ("1", True, -1.0, float("nan"), float("inf"))
        ],
        *[
            json.dumps({**good, "outcomes": [{**best, "name": wrong}]}).encode()
            for wrong in ("\ud800", "\x1b[2J", None)
        ],
        *[
            json.dumps({**good, name: "\ud800"}).encode()
            for name in ("key", "stamp", "date", "limit")
        ],
    ]
    cache.path.write_bytes(b"\n".join([*damaged, b"", cache.path.read_bytes()]))
    assert cache.rankings() == [ranking()]
    assert "are damaged and were skipped: 22;" in capsys.readouterr().err


def test_a_torn_last_line_does_not_spoil_the_next(cache: TuningCache):
    cache.add(ranking())
    cache.path.write_bytes(cache.path.read_bytes() + b'{"version": 1, "key": "to')
    cache.add(ranking("topk n=8"))
    assert [each.key for each in cache.rankings()] == ["topk n=4", "topk n=8"]


def test_clearing_forgets_everything(cache: TuningCache):
    assert cache.clear() == 0
    cache.add(ranking())
    cache.add(ranking("topk n=8"))
    assert cache.clear() == 2
    assert cache.rankings() == []
    cache.add(ranking())
    assert cache.rankings() == [ranking()]


def test_clearing_an_op_leaves_the_others_and_what_is_damaged(cache: TuningCache):
    for key in ("topk n=4", "gemv n=4", "topk n=8", "topkish n=8"):
        cache.add(ranking(key))
    cache.path.write_bytes(b"not json\n" + cache.path.read_bytes())
    assert cache.clear("gemv") == 1
    assert [each.key for each in cache.rankings()] == ["topk n=4", "topk n=8", "topkish n=8"]
    assert cache.path.read_bytes().startswith(b"not json\n")
    assert cache.clear("gemv") == 0
    assert cache.clear("topk") == 2
    cache.add(ranking("gemv n=8"))
    assert [each.key for each in cache.rankings()] == ["topkish n=8", "gemv n=8"]


def test_only_winners_are_counted_where_all_is_cleared(cache: TuningCache):
    cache.add(ranking())
    cache.path.write_bytes(b"not json\n\n" + b"[" * 100_000 + b"\n" + cache.path.read_bytes())
    assert cache.clear("gemv") == 0
    assert cache.clear() == 1
    assert cache.path.read_bytes() == b""


def test_whatever_is_in_the_file_is_shown(
    cache: TuningCache, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    from hotgrid.cli.tune._command import tune

    with override({"autotune.cache": {"file": str(tmp_path)}}) as config:
        kept = TuningCache.at(config.autotune.cache)
        for key in ("topk", "", "topk float32 nowhere rows n=4", "topk float32 cpu rows n=4"):
            kept.add(ranking(key))
        assert kept.path is not None
        kept.path.write_bytes(b"[" * 100_000 + b"\n" + kept.path.read_bytes())
        assert tune() == tune("topk") == 0
    told = capsys.readouterr()
    assert "4 winners in" in told.out and "3 winners in" in told.out
    assert "are damaged and were skipped: 1;" in told.err


def test_a_place_is_a_folder_and_none_keeps_nothing(tmp_path: Path):
    assert TuningCache.at("none").path is None
    TuningCache(None).add(ranking())
    assert TuningCache(None).clear() == 0
    with override({"autotune.cache": {"file": str(tmp_path)}}) as config:
        assert TuningCache.at(config.autotune.cache).path == tmp_path / "winners-1.jsonl"


WRITER = """
import sys
from pathlib import Path
from hotgrid.kernels.tune import Outcome, Ranking, TuningCache
cache = TuningCache(Path(sys.argv[1]))
best = Outcome(name="fast" * 500, group="tensor", score=1.0)
for n in range(100):
    cache.add(Ranking.of(f"{sys.argv[2]} n={n}", "here", [best], 0.0))
"""


def test_two_processes_write_at_once(cache: TuningCache):
    command = [sys.executable, "-c", WRITER, str(cache.path)]
    writers = [subprocess.Popen([*command, name]) for name in ("first", "second")]
    assert [each.wait() for each in writers] == [0, 0]
    keys = [each.key for each in cache.rankings()]
    assert len(keys) == len(cache.path.read_text().splitlines()) == 200
    assert set(keys) == {f"{name} n={n}" for name in ("first", "second") for n in range(100)}


def test_a_lock_that_is_never_released_only_costs_the_cache(
    cache: TuningCache, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    import fcntl

    cache.add(ranking())
    monkeypatch.setattr(_cache, "_PATIENCE", 0.0)
    with cache.path.open("rb") as stream, override({"logging.level": "info"}):
        fcntl.flock(stream, fcntl.LOCK_EX)
        assert cache.rankings() == []
        cache.add(ranking("topk n=8"))
    assert "another process holds its lock" in capsys.readouterr().err
    assert cache.rankings() == [ranking()]


@pytest.mark.parametrize(
    ("made", "reasons"),
    [
        ("file", ["read (Not a directory)", "written (Not a directory)"]),
        ("folder", ["read (Is a directory)", "written (Is a directory)"]),
    ],
)
def test_a_place_that_cannot_be_used_is_reported_once_and_costs_only_the_cache(
    made: str, reasons: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    # A file in the place of a folder stops root too, unlike the bits of a mode.
    folder = tmp_path / "below"
    if made == "file":
        folder.write_text("")
    else:
        (folder / "winners-1.jsonl").mkdir(parents=True)
    with override({"autotune.cache": {"file": str(folder / ("x" if made == "file" else ""))}}):
        for _ in range(3):
            assert two()(*ARGUMENTS)[1].tolist() == [0, 2]
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    for line, reason in zip(lines, reasons, strict=True):
        assert f"cannot be {reason}, so winners are not kept there" in line


def test_a_later_process_does_not_time_again(tmp_path: Path, no_trials: Any):
    with override({"autotune.cache": {"file": str(tmp_path)}}):
        first = two()
        first(*ARGUMENTS)
        (line,) = (tmp_path / "winners-1.jsonl").read_text().splitlines()
        no_trials()
        later = two()
        later(*ARGUMENTS)
        assert later.candidate_for(*ARGUMENTS).name == first.candidate_for(*ARGUMENTS).name
    found = json.loads(line)
    assert found["version"] == 1
    assert found["key"].startswith("topk float32 cpu rows outer=1 n=4")
    assert {each["name"] for each in found["outcomes"]} == {"a", "b"}


@pytest.mark.parametrize("change", ["candidates", "torch", "threads", "hotgrid"])
def test_a_change_of_what_it_depends_on_makes_it_invalid(
    change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    from hotgrid.kernels.tune._measure import _stamp

    with override({"autotune.cache": {"file": str(tmp_path)}}):
        two()(*ARGUMENTS)
        later = two()
        if change == "candidates":
            third = Candidate(name="c", function=TOPK.reference)
            later = Tuned(later.op.with_candidates(*later.op.candidates, third))
        elif change == "torch":
            monkeypatch.setattr(torch, "__version__", "3.0")
        elif change == "hotgrid":
            monkeypatch.setattr(_stamp, "__version__", "9.9")
        else:
            monkeypatch.setattr(torch, "get_num_threads", lambda: 77)
        later(*ARGUMENTS)
    assert len((tmp_path / "winners-1.jsonl").read_text().splitlines()) == 2


def test_the_driver_and_the_device_are_part_of_the_stamp(monkeypatch: pytest.MonkeyPatch):
    from types import SimpleNamespace

    from hotgrid.kernels.tune._measure import _stamp

    def marked(name: str, driver: int) -> str:
        _stamp._cuda.cache_clear()
        properties = SimpleNamespace(name=name, total_memory=1)
        monkeypatch.setattr(torch.cuda, "get_device_properties", lambda index: properties)
        monkeypatch.setattr(torch._C, "_cuda_getDriverVersion", lambda: driver, raising=False)
        found = stamp(("a",), torch.device("cuda", 0))
        _stamp._cuda.cache_clear()
        return found

    assert marked("H200", 12) == marked("H200", 12)
    assert len({marked("H200", 12), marked("H200", 13), marked("B200", 12)}) == 3


def test_rankings_of_failures_are_not_kept(tmp_path: Path):
    def fail(*arguments: Any) -> Any:
        raise RuntimeError("no")

    make = lambda name: Candidate(name=name, function=fail)
    with override({"autotune.cache": {"file": str(tmp_path)}, "logging.level": "off"}):
        failing = Tuned(TOPK.with_candidates(make("a"), make("b")))
        assert failing.ranking_for(*ARGUMENTS).winner is None
    assert not (tmp_path / "winners-1.jsonl").exists()


def test_each_line_is_parsed_once(cache: TuningCache):
    before = _cache._read.cache_info().misses
    for n in range(20):
        cache.add(ranking(f"topk n={n} once"))
    for n in range(20):
        assert cache.find(f"topk n={n} once", "here") == ranking(f"topk n={n} once")
    cache.add(ranking("topk n=20 once"))
    assert cache.find("topk n=20 once", "here") == ranking("topk n=20 once")
    assert _cache._read.cache_info().misses == before + 21


def test_a_damaged_line_is_reported_once(
    cache: TuningCache, capsys: pytest.CaptureFixture[str]
):
    cache.add(ranking())
    with cache.path.open("ab") as stream:
        stream.write(b"broken\n")
    for n in (4, 5, 6):
        cache.find(f"topk n={n}", "here")
    cache.add(ranking("topk n=9"))
    assert cache.find("topk n=9", "here") == ranking("topk n=9")
    assert capsys.readouterr().err.count("are damaged") == 1


def test_what_another_process_has_written_anew_is_read_anew(cache: TuningCache):
    for n in (4, 8):
        cache.add(ranking(f"topk n={n}"))
    assert cache.find("topk n=4", "here") is not None
    other = TuningCache(cache.path)
    other.clear("topk")
    assert cache.find("topk n=4", "here") is None
    for n in (16, 32, 64):  # longer than before, and other lines
        other.add(ranking(f"topk n={n}"))
    assert cache.find("topk n=8", "here") is None
    assert cache.find("topk n=64", "here") == ranking("topk n=64")
    cache.path.unlink()
    assert cache.find("topk n=64", "here") is None
    other.add(ranking("topk n=4", name="other"))
    assert cache.find("topk n=4", "here").winner.name == "other"


def test_a_line_that_was_cut_off_is_found_once_it_is_whole(cache: TuningCache):
    cache.add(ranking())
    line = cache.path.read_bytes()
    cache.path.write_bytes(line[:40])
    assert cache.find("topk n=4", "here") is None
    cache.path.write_bytes(line)
    assert cache.find("topk n=4", "here") == ranking()
