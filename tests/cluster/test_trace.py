"""A trace of ranks that are processes of their own."""

import json
from pathlib import Path

import pytest
import torch

from hotgrid.cluster import trace

from .forked_ranks import run_forked

SCRIPT = """
import sys, hotgrid as hg
ranks = hg.cluster.world("cpu")
sim = hg.Simulation(hg.pde.Heat(), size=(32, 32), mesh="2", depth=2, compiled=False,
                    device="cpu", overlap=sys.argv[2] == "yes", communicator=ranks)
with hg.cluster.trace(sys.argv[1], ranks):
    sim.run(8, progress=False)
"""


def traced(folder: Path, overlap: str) -> list[dict]:
    run_forked(SCRIPT, str(folder / "trace.json"), overlap)
    return json.loads((folder / "trace.json").read_text())["traceEvents"]


def spans(events: list[dict], rank: int, name: str) -> list[tuple[float, float]]:
    found = [e for e in events if e["pid"] == rank and e["name"] == name and e["ph"] == "X"]
    return sorted((e["ts"], e["ts"] + e["dur"]) for e in found)


@pytest.mark.long
def test_messages_are_in_flight_while_the_interior_is_computed(tmp_path: Path):
    events = traced(tmp_path, "yes")
    for rank in (0, 1):
        travels = spans(events, rank, "exchange under way")
        interiors = spans(events, rank, "interior")
        assert len(travels) == len(interiors) >= 4
        for (sent, arrived), (begin, end) in zip(travels, interiors, strict=True):
            assert sent <= begin <= end <= arrived
    assert any(event["name"].startswith("gloo:") for event in events)
    assert min(event["ts"] for event in events if event["ph"] == "X") == 0


@pytest.mark.long
def test_without_overlap_steps_follow_the_exchange(tmp_path: Path):
    events = traced(tmp_path, "no")
    for rank in (0, 1):
        exchanges, steps = (spans(events, rank, name) for name in ("exchange", "steps"))
        assert len(exchanges) == 4
        assert exchanges[0][1] <= steps[0][0]
        assert not any(a[0] < b[1] and b[0] < a[1] for a in exchanges for b in steps)


def test_one_rank_traces_itself(tmp_path: Path):
    with trace(tmp_path / "new" / "trace.json"), torch.profiler.record_function("work"):
        torch.ones(3).sum()
    events = json.loads((tmp_path / "new" / "trace.json").read_text())["traceEvents"]
    assert [event["name"] for event in events] == ["process_name", "work"]
