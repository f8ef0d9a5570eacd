"""`hotgrid train show` and `compare`, in this process."""

import json
from pathlib import Path

import pytest
import torch

from hotgrid.train import SGD, TensorBatches, Trainer, groups, read_run

from .command import run as hotgrid


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> list[Path]:
    place = tmp_path_factory.mktemp("trained")
    found = []
    for rate in (0.1, 0.01):
        torch.manual_seed(0)
        layer = torch.nn.Linear(3, 1)
        loss = lambda module, x: module(x).square().mean()
        source = TensorBatches(torch.randn(12, 3), 4)
        optimizer = torch.optim.SGD(layer.parameters(), lr=rate)
        found.append(place / f"rate-{rate}")
        Trainer(
            layer, loss, source, optimizer, steps=20, log_every=2, folder=found[-1], show=False
        ).run()
    return found


def test_show_prints_curves_and_groups(folders, capsys):
    assert hotgrid(["train", "show", str(folders[0])]) == 0
    shown = capsys.readouterr().out
    assert "finished, 20 of 20 steps, Linear" in shown
    last = read_run(folders[0]).curves["train/loss"][-1][1]
    assert f"{last:.4g}" in shown or f"{last:.2e}" in shown
    assert "┤" in shown
    assert "SGD" in shown


def test_groups_that_are_named_by_a_selector_are_told_apart(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "300")
    layer, x = torch.nn.Linear(3, 1), torch.randn(12, 3)
    names = [f"//Param[@name='{each}']" for each in ("weight", "bias")]
    Trainer(
        layer,
        lambda module, x: module(x).square().mean(),
        TensorBatches(x, 4),
        groups(layer, {name: SGD(rate=0.1) for name in names}),
        steps=2,
        folder=tmp_path / "[run]",
        show=False,
    ).run()
    assert hotgrid(["train", "show", str(tmp_path / "[run]")]) == 0
    shown = capsys.readouterr().out
    assert all(f"\n{name}  " in shown for name in names)
    assert all(f"train/gradient norm, {name}" in shown for name in names)


def test_show_prints_json_and_writes_a_page(folders, capsys, tmp_path):
    page = tmp_path / "page.html"
    command = ["train", "show", str(folders[0]), "--json", "--html", str(page)]
    assert hotgrid([*command, "--only", "train/loss"]) == 0
    found = json.loads(capsys.readouterr().out)
    curve = read_run(folders[0]).curves["train/loss"]
    assert found["curves"] == {"train/loss": [list(point) for point in curve]}
    assert "<svg" in page.read_text()


def test_compare_shows_what_differs(folders, capsys):
    assert hotgrid(["train", "compare", *map(str, folders), "--only", "train/loss"]) == 0
    shown = capsys.readouterr().out
    assert "train/loss, last" in shown
    assert "rate 0.01" in shown
    assert hotgrid(["train", "compare", *map(str, folders), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert list(found["values"]) == ["train/loss"]
    assert found["settings"].keys() == {"optimizer"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["show", "nowhere"], "there is no training run in `nowhere`"),
        (["show", "{0}", "--only", "train/los"], "did you mean `train/loss`"),
        (["compare", "{0}"], "name two runs or more"),
        (["compare", "{0}", "nowhere"], "there is no training run in `nowhere`"),
    ],
)
def test_mistakes_are_said(arguments, message, folders, capsys):
    given = [each.format(folders[0]) for each in arguments]
    assert hotgrid(["train", *given]) == 1
    assert message in capsys.readouterr().err


def test_a_folder_of_runs_names_them(folders, capsys):
    parent, names = folders[0].parent, sorted(each.name for each in folders)
    assert hotgrid(["train", "show", str(parent)]) == 1
    assert f"it has the runs {', '.join(names)}" in capsys.readouterr().err
