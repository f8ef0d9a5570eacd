"""What is shown of a run: text, events, the page."""

import contextlib
import json
import os
import pty
import re
import subprocess
import sys
from dataclasses import dataclass, replace
from html.parser import HTMLParser

import pytest
import torch

from hotgrid.errors import DamagedError, StoreError
from hotgrid.train import (
    Accuracy,
    Evaluation,
    Metric,
    ModelFlops,
    Saving,
    TensorBatches,
    Trainer,
    compare_runs,
    read_events,
    read_run,
    text_plot,
    write_report,
)
from hotgrid.train._report import EventLog, short

from .training_cases import data, sgd, trainer


def classified(module, batch):
    scores = module(batch[0])
    targets = (batch[1][:, 0] > 0).long()
    return {
        "loss": torch.nn.functional.cross_entropy(scores, targets),
        "scores": scores,
        "targets": targets,
    }


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "small <run>"
    trainer(
        step=classified,
        steps=30,
        folder=folder,
        metrics=(Accuracy(), ModelFlops(1e6)),
        evaluation=Evaluation(TensorBatches(data(20), 8, endless=False), every=10),
    ).run()
    return folder


def dots(text: str, height: int) -> list[list[int]]:
    """The rows of dots of a plot, from its characters."""
    rows = [[0] * 200 for _ in range(4 * height)]
    places = {0x01: (0, 0), 0x02: (1, 0), 0x04: (2, 0), 0x40: (3, 0),
              0x08: (0, 1), 0x10: (1, 1), 0x20: (2, 1), 0x80: (3, 1)}  # fmt: skip
    for line in range(height):
        for column, letter in enumerate(text.splitlines()[line].partition("┤")[2]):
            bits = ord(letter) - 0x2800 if letter != " " else 0
            for bit, (row, side) in places.items():
                rows[4 * line + row][2 * column + side] = int(bool(bits & bit))
    return rows


def test_a_straight_line_is_plotted_straight():
    text = text_plot({"a": [(0, 0.0), (100, 1.0)]}, width=31, height=5).plain
    rows = dots(text, 5)
    for column in range(40):
        ups = [19 - row for row in range(20) if rows[row][column]]
        assert ups, column
        assert abs(sum(ups) / len(ups) - 19 * column / 39) <= 1


def test_a_plot_has_the_range_of_both_axes():
    text = text_plot({"a": [(10, 2.0), (2500, 0.5)]}, width=40).plain
    assert "2 ┤" in text
    assert "0.5 ┤" in text
    assert text.rstrip().endswith("2,500")
    assert text_plot({"a": []}).plain == "(no values yet)"
    assert text_plot({"a": [(1, float("nan")), (2, 3.0)]}, width=30).plain.count("3 ┤") == 2


def test_events_say_what_happened(run):
    events = read_events(run)
    assert [e["event"] for e in events[:1] + events[-1:]] == ["start", "end"]
    assert events[0]["groups"][0]["optimizer"] == "SGD"
    assert sum(e["event"] == "train" for e in events) == 30
    # A value that is not known is null.
    assert events[1]["values"]["train/MFU"] is None


def test_a_broken_log_is_said(tmp_path):
    with pytest.raises(StoreError, match="no training run"):
        read_events(tmp_path)
    (tmp_path / "events.jsonl").write_text('{"event": "start", "step": 0}\nhello\n')
    with pytest.raises(DamagedError, match="line 2, is not an event"):
        read_events(tmp_path)


class Page(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.text, self.lines, self.outside = [], "", [], []

    def handle_starttag(self, tag, attrs):
        known = dict(attrs)
        self.tags.append(tag)
        self.outside += [known[n] for n in ("src", "href") if n in known]
        if tag == "polyline":
            self.lines.append(known["points"])

    def handle_data(self, data):
        self.text += data


def test_the_page_holds_every_curve_and_nothing_from_outside(run):
    page = Page()
    page.feed((run / "report.html").read_text())
    assert page.outside == []
    assert not re.search(
        r"url\(|@import|https?://(?!www\.w3\.org/2000/svg)", (run / "report.html").read_text()
    )
    assert page.tags.count("figure") == 4  # loss, accuracy, norm, rate
    assert "small <run>" in page.text
    assert "finished" in page.text
    assert "n/a" in page.text
    # The curve of the training loss has all its points, and goes the way of the values.
    curve = read_run(run).curves["train/loss"]
    places = [tuple(map(float, p.split(","))) for p in page.lines[0].split()]
    assert len(places) == len(curve) == 30
    highest = max(range(30), key=lambda at: curve[at][1])
    assert places[highest][1] == min(y for _, y in places)


def test_the_page_can_be_written_elsewhere(run, tmp_path):
    assert write_report(run, tmp_path / "a.html").read_text().startswith("<!doctype html>")


def test_runs_are_compared(run, tmp_path):
    trainer(step=classified, steps=10, folder=tmp_path / "b", seed=1).run()
    found = compare_runs([read_run(run), read_run(tmp_path / "b")])
    assert found["steps"] == [30, 10]
    assert found["settings"]["seed"] == ["0", "1"]
    last = found["values"]["train/loss"]["last"]
    assert last == [read_run(f).curves["train/loss"][-1][1] for f in (run, tmp_path / "b")]
    assert found["values"]["valid/loss"]["last"][1] is None
    assert found["values"]["train/accuracy"]["best"][0] == max(
        value for _, value in read_run(run).curves["train/accuracy"]
    )


@dataclass(frozen=True)
class Score(Metric):
    """A value whose name does not say that more is better."""

    better = "highest"

    @property
    def name(self) -> str:
        return "F1"

    def sums(self, seen):
        return seen.outputs["loss"].detach(), 1.0

    def value(self, sums, window):
        return sums[0] / sums[1]


def test_the_best_is_what_the_metric_says(tmp_path, capsys):
    def scored(**options):
        return trainer(
            step=classified, folder=tmp_path, metrics=[Score()],
            evaluation=Evaluation(
                TensorBatches(data(20), 8, endless=False), every=4, metrics=[Score()]
            ),
            saving=Saving(best="train/loss", better="highest"), **options,
        )  # fmt: skip

    scored(steps=8).run()
    # Values that only a later command has are known too.
    again = scored(steps=16)
    again.run(resume=True)
    run = read_run(tmp_path)
    for name in ("train/F1", "valid/F1", "train/loss"):
        highest = max(value for _, value in run.curves[name])
        assert run.best(name)[1] == highest > run.curves[name][-1][1]
        assert compare_runs([run])["values"][name]["best"] == [highest]
    text = (tmp_path / "report.html").read_text()
    assert f"best {short(run.best('valid/F1')[1])} at step 4<" in text
    # A run that says nothing is judged by names.
    assert replace(run, facts={}).best("train/loss")[1] < run.best("train/loss")[1]


def test_a_pipe_gets_plain_lines(tmp_path, capfd):
    trainer(steps=6, folder=tmp_path, show=True).run()
    shown = capfd.readouterr().err
    assert re.search(r"^step 1 of 6  train/loss [\d.]+", shown, re.MULTILINE)
    assert "\x1b" not in shown


def test_a_terminal_gets_plots(tmp_path):
    """The run of a child process whose standard error is a terminal."""
    program = (
        "import torch\nfrom hotgrid.train import TensorBatches, Trainer\n"
        "layer = torch.nn.Linear(3, 1)\n"
        "loss = lambda module, x: module(x).square().mean()\n"
        "Trainer(layer, loss, TensorBatches(torch.randn(9, 3), 3),\n"
        "        torch.optim.SGD(layer.parameters(), lr=0.1), steps=40, log_every=5).run()\n"
    )
    master, terminal = pty.openpty()
    size = {"TERM": "xterm-256color", "COLUMNS": "90", "LINES": "40"}
    child = subprocess.Popen(
        [sys.executable, "-c", program], stderr=terminal, env={**os.environ, **size}
    )
    os.close(terminal)
    shown = b""
    # Reading fails when the child has closed its end.
    with contextlib.suppress(OSError):
        while part := os.read(master, 65536):
            shown += part
    os.close(master)
    assert child.wait() == 0, shown.decode()
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode())
    assert "step 40 of 40" in text
    assert "● train" in text
    assert re.search("[\u2801-\u28ff]", text)
    assert "train/loss" in text


def test_json_lines_stay_valid_when_a_value_is_not_finite(tmp_path):
    def wild(module, batch):
        return {"loss": module(batch[0]).square().mean(), "count": float("inf")}

    with pytest.raises(ArithmeticError):
        Trainer(
            torch.nn.Linear(6, 2).double(), wild, TensorBatches(data(), 8), sgd,
            steps=3, folder=tmp_path, show=False, log_every=1,
        ).run()  # fmt: skip
    for line in (tmp_path / "events.jsonl").read_text().splitlines():
        json.loads(line, parse_constant=pytest.fail)


def test_a_log_is_whole_where_the_system_writes_a_part(tmp_path, monkeypatch):
    write = os.write
    monkeypatch.setattr(os, "write", lambda file, data: write(file, data[:7]))
    log = EventLog(tmp_path / "events.jsonl")
    log.write("start", 0, module="Sequential")
    log.close()
    assert read_events(tmp_path) == [{"event": "start", "step": 0, "module": "Sequential"}]


def test_a_value_that_is_lacking_says_why(tmp_path):
    def unscored(module, batch):
        found = classified(module, batch)
        return found | {"targets": torch.full_like(found["targets"], -100)}

    metrics = [Accuracy(), ModelFlops(flops=1.0)]
    trainer(step=unscored, steps=2, folder=tmp_path, metrics=metrics).run()
    text = (tmp_path / "report.html").read_text()
    assert "accuracy</span><b>n/a</b><i>nothing to show<" in text
    assert "MFU</span><b>n/a</b><i>not known for this device<" in text
