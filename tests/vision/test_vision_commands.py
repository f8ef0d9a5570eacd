"""`hotgrid vision`: one path from images to a model that is measured, used and exported."""

import json
import sys
from unittest.mock import patch

import numpy as np
import pytest
from PIL import Image

from hotgrid.cli import main
from hotgrid.vision import list_models, recipe_names

from .shapes import write_shapes

SMALL = ["--set", "model.dims=(8,16,16)", "--set", "rate=0.3", "--set", "rate_batch=0",
         "--set", "norm_rate=4.0", "--batch", "32", "--device", "cpu"]  # fmt: skip


def hotgrid(arguments: list[str]) -> object:
    """Run a command line in this process, and return its exit code."""
    with patch.object(sys, "argv", ["hotgrid", *arguments]), pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code


@pytest.fixture(scope="module")
def shapes(tmp_path_factory):
    return write_shapes(tmp_path_factory.mktemp("data") / "shapes", 48, 16)


@pytest.fixture(scope="module")
def trained(shapes, tmp_path_factory):
    out = tmp_path_factory.mktemp("out") / "run"
    words = ["vision", "train", "--data", str(shapes), "--model", "fast_resnet"]
    assert hotgrid([*words, "--epochs", "12", "--out", str(out), *SMALL]) == 0
    return out


def heard(capsys, *words: str) -> str:
    code = hotgrid(["vision", *words])
    said = capsys.readouterr()
    assert code == 0, said.err
    return said.out


def test_a_model_is_measured(trained, shapes, tmp_path, capsys):
    table = heard(capsys, "eval", str(trained), "--data", str(shapes), "--out", str(tmp_path))
    assert "accuracy" in table and "most often taken for" in table
    assert (tmp_path / "confusion.png").is_file() and (tmp_path / "worst.png").is_file()
    words = ("eval", str(trained / "model"), "--data", str(shapes), "--flip", "--json")
    found = json.loads(heard(capsys, *words))
    assert found["count"] == 36
    assert found["accuracy"] > 0.8
    assert sum(map(sum, found["confusion"])) == 36


def test_files_are_named(trained, shapes, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    files = [str(shapes / "test" / kind / "0.png") for kind in ("cross", "disc")]
    table = heard(
        capsys, "predict", *files, "--model", str(trained), "--top", "2",
        "--out", str(tmp_path / "shown.png"),
    )  # fmt: skip
    assert "0.png" in table and "%" in table
    with Image.open(tmp_path / "shown.png") as drawn:
        assert drawn.width > 100
    found = json.loads(heard(capsys, "predict", *files, "--model", str(trained), "--json"))
    for shares in found.values():
        assert sum(shares.values()) == pytest.approx(1)


@pytest.mark.parametrize("name", ["[1].png", "{a}.png", "[bold]:cat:.png"])
def test_a_file_may_have_any_name(name, shapes, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_bytes((shapes / "test" / "disc" / "0.png").read_bytes())
    assert f"\n{name}  " in heard(capsys, "predict", name)


@pytest.mark.parametrize("name", ["$10 and $a_.png", "$\\x$.png", "\udcff.png"])
def test_a_file_of_any_name_is_drawn(name, shapes, tmp_path, capsys):
    (tmp_path / name).write_bytes((shapes / "test" / "disc" / "0.png").read_bytes())
    drawn = tmp_path / "drawn.png"
    heard(capsys, "predict", str(tmp_path / name), "--out", str(drawn))
    assert drawn.is_file()


def test_files_that_cannot_be_read_do_not_stop_the_others(trained, shapes, tmp_path, capsys):
    good = str(shapes / "test" / "disc" / "0.png")
    bad, gone = tmp_path / "bad.png", tmp_path / "gone.png"
    bad.write_bytes(b"not an image")
    files = [str(bad), good, str(gone)]
    picture = tmp_path / "shown.png"
    words = ["vision", "predict", *files, "--model", str(trained), "--out", str(picture)]
    assert hotgrid([*words, "--json"]) == 1
    said = capsys.readouterr()
    assert list(json.loads(said.out)) == [good]
    assert "bad.png" in said.err and "`" + str(gone) + "` is missing" in said.err
    assert picture.exists()
    assert hotgrid(["vision", "predict", str(bad), "--model", str(trained)]) == 1
    assert "bad.png" in capsys.readouterr().err


def test_a_model_is_exported(trained, tmp_path, capsys):
    file = tmp_path / "model.pt2"
    text = heard(capsys, "export", str(trained), "--out", str(file))
    assert "differ from the model's by at most" in text
    assert file.stat().st_size > 1000


def test_an_interrupted_run_goes_on(trained, shapes, capsys):
    words = ["vision", "train", "--data", str(shapes), "--model", "fast_resnet", "--out"]
    assert hotgrid([*words, str(trained), "--epochs", "12", "--resume", *SMALL]) == 0
    assert "held-out images right" in capsys.readouterr().out


def test_augmentation_is_drawn(tmp_path, shapes, capsys):
    sheet = tmp_path / "sheet.png"
    heard(capsys, "augment", "--preview", str(sheet), "--versions", "3", "--size", "40")
    with Image.open(sheet) as drawn:
        assert drawn.size == (4 * 44 + 4, 4 * 44 + 4)
    (tmp_path / "mine.json").write_text('{"name": "invert"}')
    image = str(shapes / "test" / "disc" / "0.png")
    heard(
        capsys, "augment", "--preview", str(sheet), "--stages", str(tmp_path / "mine.json"),
        "--images", image, "--versions", "1", "--size", "16",
    )  # fmt: skip
    with Image.open(sheet) as drawn:
        pixels = np.asarray(drawn)
    assert np.array_equal(255 - pixels[4:20, 4:20], pixels[4:20, 24:40])


def test_models_and_recipes_are_listed(capsys):
    assert json.loads(heard(capsys, "models", "--json")) == list_models()
    assert heard(capsys, "models", "swin_c*").split() == ["swin_cifar"]
    table = heard(capsys, "models", "--recipes")
    assert all(name in table for name in recipe_names())
    assert {*json.loads(heard(capsys, "models", "--recipes", "--json"))} == {*recipe_names()}


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["train", "--data", "nowhere", "--model", "resnet18"], "nowhere"),
        (["train", "--data", "SHAPES", "--model", "resnt18"], "resnet18"),
        (["train", "--data", "SHAPES", "--model", "resnet18", "--recipe", "swim"], "swin"),
        (["train", "--data", "SHAPES", "--model", "resnet18", "--set", "rat=1"], "rate"),
        (["train", "--data", "SHAPES", "--model", "resnet18", "--set", "rate"], "KEY=VALUE"),
        (["predict", "nothing.jpg", "--model", "."], "hotgrid vision train"),
        (["eval", "nowhere", "--data", "SHAPES"], "nowhere"),
        (["predict", "a.jpg", "--top", "0"], "`top` is 0"),
        (["augment", "--preview", "a.png", "--versions", "0"], "--versions"),
        (["augment", "--preview", "a.png", "--size", "0"], "--size"),
        (["models", "swim*"], "swim"),
    ],
)
def test_mistakes_are_explained(words, text, shapes, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = [str(shapes) if word == "SHAPES" else word for word in words]
    assert hotgrid(["vision", *words]) == 1
    assert text in capsys.readouterr().err
