"""`hotgrid data show` and `bench`, in this process."""

import json

import numpy as np
import pytest
from PIL import Image

from hotgrid.data import ClassFolders, DecodeCentreCrop, JsonLines, Plan, Tokenise, set_encoder

from .command import run as hotgrid


@pytest.fixture
def photos(tmp_path):
    for n in range(3):
        file = tmp_path / "photos" / f"class-{n}" / "photo.png"
        file.parent.mkdir(parents=True)
        Image.fromarray(np.full((9, 9, 3), 40 * n, np.uint8)).save(file)
    plan = Plan(ClassFolders(str(tmp_path / "photos")))
    plan = plan.then(DecodeCentreCrop(4, 4), "data", "pixels").yielding("pixels", "label")
    plan.write(tmp_path / "plan.json")
    return tmp_path


def test_show_prints_the_graph_and_samples(photos, capsys):
    assert hotgrid(["data", "show", str(photos / "plan.json"), "--samples", "2"]) == 0
    shown = capsys.readouterr().out
    assert Plan.read(photos / "plan.json").graph() in shown
    assert "3 samples, 3 classes" in shown
    assert "class-1/photo.png" in shown
    assert "uint8 4x4x3, 40 to 40, mean 40" in shown


def test_show_prints_json(photos, capsys):
    assert hotgrid(["data", "show", str(photos / "plan.json"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    plan = Plan.read(photos / "plan.json")
    assert Plan.from_json(json.dumps(found["plan"])) == plan
    assert found["fingerprint"] == plan.fingerprint()
    assert found["columns"]["pixels"] == "uint8[4,4,3]"
    assert found["samples"] == 3
    assert found["facts"] == {"classes": ["class-0", "class-1", "class-2"]}
    assert found["first"][0]["columns"]["label"] == "0"


def test_show_names_a_damaged_sample(photos, capsys):
    (photos / "photos" / "class-0" / "photo.png").write_bytes(b"hello")
    assert hotgrid(["data", "show", str(photos / "plan.json")]) == 0
    assert "corrupt: `" in capsys.readouterr().out


def test_names_are_shown_as_they_are(photos, capsys):
    (photos / "photos" / "class-0").rename(photos / "photos" / "[a]:cat:")
    plan = Plan(ClassFolders(str(photos / "photos"))).yielding("path")
    plan.write(photos / "plan.json")
    assert hotgrid(["data", "show", str(photos / "plan.json")]) == 0
    assert capsys.readouterr().out.count("[a]:cat:/photo.png") == 2


def test_names_that_are_not_utf8_are_shown(photos, capsys):
    (photos / "photos" / "class-0" / "photo.png").rename(photos / "photos/class-0/\udcff.png")
    Plan(ClassFolders(str(photos / "photos"))).yielding("path").write(photos / "plan.json")
    assert hotgrid(["data", "show", str(photos / "plan.json")]) == 0
    assert "class-0/\\udcff.png" in capsys.readouterr().out
    assert hotgrid(["data", "show", str(photos / "plan.json"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["first"][0]["columns"] == {"path": "class-0/\udcff.png"}


def test_show_can_leave_the_source_alone(photos, capsys):
    (photos / "photos").rename(photos / "elsewhere")
    assert hotgrid(["data", "show", str(photos / "plan.json"), "--samples", "0"]) == 0
    assert "yields pixels, label" in capsys.readouterr().out


def test_bench_prints_speed_and_steps(photos, capsys):
    command = ["data", "bench", str(photos / "plan.json"), "--batch", "2", "--seconds", "0.05"]
    assert hotgrid(command) == 0
    shown = capsys.readouterr().out
    assert "samples/s" in shown and "decode_centre_crop" in shown
    assert hotgrid([*command, "--json", "--workers", "1"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["samples"] > 0
    assert [*found["steps"]] == ["read", "decode_centre_crop"]


def test_the_encodings_of_hotgrid_are_there_for_plans(tmp_path, capsys):
    (tmp_path / "a.jsonl").write_text('{"text": "hello world"}\n')
    source = JsonLines((str(tmp_path / "a.jsonl"),), {"text": "text"})
    # The command has to find it by itself.
    set_encoder("a name for now", lambda text: [len(text)])
    plan = Plan(source).then(Tokenise("a name for now"), "text", "ids")
    text = plan.to_json().replace("a name for now", "hotgrid_32k")
    (tmp_path / "plan.json").write_text(text)
    assert hotgrid(["data", "show", str(tmp_path / "plan.json")]) == 0
    assert "int64 2" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["show", "nowhere.json"], "nowhere.json"),
        (["show", "PLAN", "--samples", "-1"], "`--samples` -1"),
        (["bench", "PLAN", "--seconds", "0"], "`--seconds` must be above 0 and at most 3600"),
        (["bench", "PLAN", "--batch", "0"], "`size` must be at least 1, got 0"),
    ],
    ids=["missing", "samples", "seconds", "batch"],
)
def test_mistakes_are_named(photos, arguments, words, capsys):
    given = [str(photos / "plan.json") if each == "PLAN" else each for each in arguments]
    assert hotgrid(["data", *given]) == 1
    assert words in capsys.readouterr().err


def test_types_that_do_not_fit_are_named_with_the_file(photos, capsys):
    path = photos / "plan.json"
    path.write_text(path.read_text().replace('"data": "data"', '"data": "label"'))
    assert hotgrid(["data", "show", str(path)]) == 1
    found = capsys.readouterr().err
    assert "plan.json" in found and "`label`" in found and "`decode_centre_crop`" in found
