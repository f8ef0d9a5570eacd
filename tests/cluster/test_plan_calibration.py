"""Calibrations are saved and loaded, and other files are refused."""

import json
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from hotgrid.cluster import Communicator, run_module, run_ranks
from hotgrid.cluster.plan import Calibration, Link, ModelSpeed, _link_probe, load_calibration
from hotgrid.cluster.plan._calibration import calibration_file
from hotgrid.cluster.plan._link_probe import seconds_per_exchange
from hotgrid.config import override
from hotgrid.errors import ArgumentError, HotgridError

FOUND = Calibration(
    date="2026-01-31",
    machine="a desk",
    kind="cpu",
    cores=4,
    memory_bytes=32e9,
    copy_bandwidth=4e10,
    link=Link(2e9, 5e-5),
    models={"heat float32": ModelSpeed(share=0.8, step_overhead=1e-5)},
)


def test_it_is_read_back_as_it_was_written(tmp_path: Path):
    path = tmp_path / "new" / "folder" / "calibration.json"
    assert FOUND.save(path) == path
    assert load_calibration(path) == FOUND
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_it_lies_where_the_settings_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    with override({"autotune.cache": "local"}):
        assert calibration_file() == tmp_path / ".hotgrid" / "plan" / "calibration.json"
        assert load_calibration() is None
        FOUND.save()
        assert load_calibration() == FOUND
    with override({"autotune.cache": "none"}):
        assert FOUND.save() is None
        assert load_calibration() is None


@pytest.mark.parametrize(
    "text",
    [
        "not json",
        "[]",
        "{}",
        json.dumps({**FOUND.plain(), "format": 0}),
        json.dumps({**FOUND.plain(), "link": {"bandwidth": 1}}),
    ],
)
def test_anything_else_is_advised_to_measure_again(tmp_path: Path, text: str):
    path = tmp_path / "calibration.json"
    path.write_text(text)
    with pytest.raises(ArgumentError, match=r"calibration\.json`.*--calibrate"):
        load_calibration(path)


def test_a_model_brings_its_overhead():
    assert FOUND.device("heat float32").step_overhead == 1e-5
    assert FOUND.device("other").step_overhead == 0
    assert "2026-01-31" in FOUND.device().source
    more = FOUND.with_model("life", ModelSpeed(1.5, 0.0))
    assert set(more.models) == {"heat float32", "life"}


def test_the_probe_times_exchanges_on_all_ranks_alike():
    times = run_ranks(2, lambda communicator: seconds_per_exchange(communicator, 64))
    assert times[0] == times[1]
    assert 0 < times[0][0] <= times[0][1]


def test_the_probe_takes_the_time_of_the_slower_rank(monkeypatch: pytest.MonkeyPatch):
    """Most exchanges wait for the scheduler; one rank alone may seem to be quick."""
    here = threading.local()

    def clock() -> float:
        here.calls = getattr(here, "calls", 0) + 1
        here.now = getattr(here, "now", 0.0)
        if here.calls % 2 == 0:
            exchange = here.calls // 2
            quick = exchange == 30 or (exchange == 20 and here.rank == 1)
            here.now += 0.0002 if quick else 0.01
        return here.now

    def rank(communicator: Communicator) -> tuple[float, float]:
        here.rank = communicator.rank
        return seconds_per_exchange(communicator, 64)

    monkeypatch.setattr(_link_probe, "time", SimpleNamespace(perf_counter=clock))
    assert run_ranks(2, rank) == [pytest.approx((0.0002, 0.01))] * 2


@pytest.mark.long
def test_a_failing_module_is_an_error_with_its_last_lines():
    # A command that is not known needs no torch, which would take most of the time.
    said = "2 ranks of `hotgrid` failed: hotgrid: (rank 1: )?Unknown command"
    with pytest.raises(HotgridError, match=said):
        run_module(2, "hotgrid", ["rnu", "heat"], timeout=120)
