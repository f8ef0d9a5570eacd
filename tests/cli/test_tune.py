"""`hotgrid tune`, in this process, with a cache in an empty folder."""

import json
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hotgrid.cli.tune._options import EXAMPLES, OPTIONS
from hotgrid.cli.tune._text import _word
from hotgrid.kernels import OPS, tune
from hotgrid.kernels.tune._trials import _trial

from .command import run

QUICK = ["-c", "autotune.warmups=0", "-c", "autotune.samples=2", "-c", "autotune.cache=local"]
TABLE = ["--k", "2", "--dim", "-2"]


@pytest.fixture(autouse=True)
def a_machine_that_is_known(monkeypatch: pytest.MonkeyPatch):
    limit = SimpleNamespace(bytes_per_second=1e10)
    monkeypatch.setattr(_trial, "matmul_peak", lambda device, dtype: 1e12)
    monkeypatch.setattr(_trial, "copy_bandwidth", lambda device: limit)
    monkeypatch.setattr(tune, "copy_bandwidth", lambda device: limit)
    for tuned in OPS.values():
        tuned.forget()
    yield
    for tuned in OPS.values():
        tuned.forget()


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert run([*QUICK, "tune", *arguments]) == 0, capsys.readouterr().err
    return capsys.readouterr().out


def plain(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    return json.loads(told(capsys, *arguments, "--json"))


def test_it_fills_shows_and_clears(capsys: pytest.CaptureFixture[str]):
    assert "Nothing is stored" in told(capsys)
    filled = told(capsys, "--fill", "topk", "8x32", "40x4", *TABLE).splitlines()
    assert "wins with" in filled[0]
    assert "outer=1 n=8 inner=32 k=2" in filled[0]
    assert "outer=1 n=64 inner=4 k=2" in filled[2]
    shown = told(capsys)
    assert shown.startswith("2 winners in ")
    assert "another machine" not in shown
    assert told(capsys, "topk") == shown
    assert told(capsys, "--clear").startswith("Removed 2 winners in ")
    assert "Nothing is stored" in told(capsys)


def test_clearing_an_op_leaves_the_others(capsys: pytest.CaptureFixture[str]):
    told(capsys, "--fill", "topk", "8x32", "40x4", *TABLE)
    told(capsys, "--fill", "gemv", "8x16")
    assert told(capsys, "--clear", "gemv").startswith("Removed 1 winners of gemv in ")
    assert [each["key"].split()[0] for each in plain(capsys)["winners"]] == ["topk", "topk"]
    assert plain(capsys, "--clear", "topk") | {"file": ""} == {
        "file": "",
        "op": "topk",
        "cleared": 2,
    }


def test_a_place_that_cannot_be_cleared_is_named(capsys: pytest.CaptureFixture[str]):
    Path(plain(capsys)["file"]).mkdir(parents=True)
    assert run([*QUICK, "tune", "--clear"]) == 1
    assert "cannot be cleared (Is a directory)" in capsys.readouterr().err


def test_the_options_of_every_op_are_reported(capsys: pytest.CaptureFixture[str]):
    for name, tuned in OPS.items():
        text = told(capsys, "--explain", name)
        for option in tuned.op.options:
            assert f"  --set {option}=" in text
        assert f" {name} " in text.splitlines()[-1]
        assert plain(capsys, "--explain", name)["options"] == dict(tuned.op.options)


def test_the_help_shows_the_options_that_ops_have():
    assert set(OPTIONS) == set(EXAMPLES) == set(OPS)
    for name, (_, options) in OPTIONS.items():
        pairs = [pair.partition("=") for pair in options.split()]
        first = {option: words.split("|")[0] for option, _, words in pairs}
        assert first == {k: _word(v) for k, v in OPS[name].op.options.items()}


@pytest.mark.parametrize("op", EXAMPLES)
def test_every_example_is_understood(op: str, capsys: pytest.CaptureFixture[str]):
    small = [re.sub(r"^\d+(x\d+)+$", shrunk, word) for word in EXAMPLES[op].split()[2:]]
    assert f"{op} " in told(capsys, *small)


def shrunk(shape: re.Match[str]) -> str:
    """As many dims, of few elements; a kernel of radius 8 still fits."""
    return "x".join(str(min(int(n), 32)) for n in shape[0].split("x"))


def test_the_same_as_json(capsys: pytest.CaptureFixture[str]):
    (filled,) = plain(capsys, "--fill", "topk", "8x32", *TABLE)["calls"]
    assert filled["shape"] == [8, 32]
    assert filled["candidate"] in OPS["topk"].op.names
    found = plain(capsys)
    assert found["file"].endswith(".hotgrid/autotune/winners-1.jsonl")
    (winner,) = found["winners"]
    assert winner["valid"] is True
    assert winner["key"] == filled["key"]
    assert plain(capsys, "--clear")["cleared"] == 1


def test_an_explanation_has_every_candidate_and_the_winner(capsys: pytest.CaptureFixture[str]):
    arguments = ["--explain", "topk", "1024x512", "--k", "3", "--dim", "0", "--dtype", "int32"]
    text = told(capsys, *arguments)
    lines = text.splitlines()
    assert lines[0].startswith("topk int32 cpu columns outer=1 n=1024 inner=512 k=3")
    assert lines[1].startswith("limit: 2.1 MB at ")
    assert lines[2].split()[:6] == [
        "candidate",
        "group",
        "minimum",
        "median",
        "spread",
        "score",
    ]
    assert lines[3].endswith("winner")
    assert "not for this call: " in text
    (call,) = plain(capsys, *arguments)["calls"]
    names = {each["name"] for each in call["candidates"]} | set(call["absent"])
    assert names == set(OPS["topk"].op.names)
    assert call["bytes"] == 1024 * 512 * 4 + 512 * 3 * 12
    assert call["candidates"][0]["share"] == pytest.approx(
        call["limit_seconds"] / call["candidates"][0]["minimum"]
    )


def test_a_candidate_named_by_hand_is_reported(capsys: pytest.CaptureFixture[str]):
    by_hand = ["-c", "kernels.choose=topk=sort_last"]
    arguments = ["--explain", "topk", "64x8", "--dim", "0", *by_hand]
    assert "limit: none" in told(capsys, *arguments)
    (call,) = plain(capsys, *arguments)["calls"]
    assert call["chosen"] == "sort_last"


def test_winners_of_other_machines_are_marked(capsys: pytest.CaptureFixture[str]):
    told(capsys, "--fill", "topk", "8x32")
    path = Path(plain(capsys)["file"])
    found = json.loads(path.read_text())
    foreign = [{**found, "stamp": "elsewhere"}, {**found, "key": "gone float32 cpu plain n=1"}]
    path.write_text("\n".join(json.dumps(each) for each in foreign))
    assert [each["valid"] for each in plain(capsys)["winners"]] == [False, False]
    assert told(capsys).count("of another machine or version") == 2


def test_without_a_cache_it_says_so(capsys: pytest.CaptureFixture[str]):
    assert run(["-c", "autotune.cache=none", "tune"]) == 0
    assert "Winners are not kept" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["tpk"], "`tpk` is not an op; there are: "),
        (["--fill"], "`--fill` needs an op and a shape"),
        (["--explain"], "`--explain` needs an op and a shape"),
        (["--explain", "topk", "--k", "2"], "`--explain` needs an op and a shape"),
        (["--clear", "gmv"], "`gmv` is not an op; there are: "),
        (["--clear", "gmv"], "did you mean `gemv`?"),
        (
            ["--fill", "codebook", "64x64", "--set", "bits=few"],
            "`bits` is 'few'; expected a number",
        ),
        (["--explain", "--clear"], "give one of --explain, --fill and --clear"),
        (["topk", "8x8"], "`8x8` needs --explain or --fill"),
        (["topk", "--k", "2"], "`k` needs --explain or --fill"),
        (["--fill", "topk", "8xy"], "`8xy` is not a shape"),
        (["--fill", "topk", "8x0"], "`8x0` is not a shape"),
        (["--fill", "topk", "8x8", "--set", "q=1"], "`q` is not an option of `topk`; it has k"),
        (["--fill", "topk", "8x8", "--k", "9"], "`k` is 9; expected 0 to 8"),
        (["--fill", "topk", "8x8", "--k", "0"], "`k` is 0"),
        (["--fill", "topk", "8x8", "--set", "k=two"], "`k` is 'two'; expected a whole number"),
        (["--fill", "topk", "8x8", "--set", "largest=so"], "`largest` is 'so'; expected true"),
        (["--fill", "topk", "8x8", "--set", "k"], "`--set k` must be NAME=VALUE"),
        (["--fill", "topk", "8x8", "--dtype", "real"], "`dtype` is 'real'"),
        (["--fill", "topk", "8x8", "--dtype", "complex64"], "`x` is torch.complex64"),
        (
            ["--fill", "topk", "8x8", "--device", "moon"],
            "`device` is 'moon'; expected",
        ),
        (["-c", "kernels.choose=tpk=x"], "`kernels.choose` names the op `tpk`"),
    ],
)
def test_contradictory_options_are_reported(
    arguments: list[str], text: str, capsys: pytest.CaptureFixture[str]
):
    assert run([*QUICK, "tune", *arguments]) == 1
    assert text in capsys.readouterr().err


def test_help_loads_neither_torch_nor_kernels():
    program = (
        "import sys\n"
        "from hotgrid.cli._main import run\n"
        "run(['--help']), run(['tune', '--help'])\n"
        "assert 'torch' not in sys.modules\n"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "hotgrid tune --explain topk 1024x4096 --k 8 --dim 0" in done.stdout


GRID = ["-c", "compile.enabled=off", "grid", "heat", "16x8"]


@pytest.fixture
def a_copy_that_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    limit = SimpleNamespace(bytes_per_second=1e10)
    monkeypatch.setattr("hotgrid.kernels.copy_bandwidth", lambda device: limit)


@pytest.mark.usefixtures("a_copy_that_is_known")
def test_the_forms_of_a_simulation_are_explained(capsys: pytest.CaptureFixture[str]):
    text = told(capsys, "--explain", *GRID, "--set", "rate=0.1")
    lines = text.splitlines()
    assert lines[0].startswith("grid float32 cpu Heat size=16x8 batch=none storage=float32")
    assert lines[3].endswith("winner")
    assert "not for this call: graph (it records CUDA graphs and needs a GPU)" in lines
    assert (
        "timed only for this report: padded (it gains only where steps are compiled for a CPU)"
        in lines
    )
    rule = "no other form can be faster here"
    assert lines[-1] == f"runs use `roll` by rule, not by timing: {rule}"
    (call,) = plain(capsys, "--explain", *GRID, "--dtype", "float64")["calls"]
    assert call["rule"] == rule
    assert {each["name"] for each in call["candidates"]} == {"strips", "padded", "roll"}
    assert (call["shape"], call["chosen"], call["bytes"]) == ([16, 8], "roll", 16 * 8 * 16)
    assert " float64 cpu Heat " in call["call"]


def test_the_form_of_a_simulation_is_filled_in(capsys: pytest.CaptureFixture[str]):
    assert told(capsys, "--fill", *GRID) == "Heat on 16x8 runs in the form `roll`\n"


def test_a_kept_form_is_shown_as_valid_and_cleared(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    import torch

    from hotgrid.kernels.tune import Contest
    from hotgrid.kernels.tune._trials import _contest

    monkeypatch.setattr(_contest, "_FOUND", {})
    both = {name: lambda: lambda: None for name in ("strips", "roll")}
    key = "grid float32 cpu Heat size=16x8"
    ranking = Contest(key=key, device=torch.device("cpu"), candidates=both).held()
    tune.TuningCache(Path(plain(capsys)["file"])).add(ranking)
    (winner,) = plain(capsys, "grid")["winners"]
    assert (winner["key"], winner["valid"]) == (key, True)
    assert winner["candidate"] in both
    assert plain(capsys, "--clear", "grid")["cleared"] == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--explain", "grid"], "`--explain` needs a model and a size, such as"),
        (["--explain", "grid", "heat"], "`grid heat` lacks a size"),
        (["--explain", "grid", "heat", "8x8", "--k", "2"], "`--k` and `--dim` apply to ops"),
        (["--explain", "grid", "haet", "8x8"], "heat"),
        (["--explain", "grid", "heat", "8x8", "--dtype", "float3"], "`dtype` is 'float3'"),
        (["--explain", "gird", "8x8"], "did you mean `grid`?"),
    ],
)
def test_errors_in_a_grid_are_reported(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
):
    assert run([*QUICK, "tune", *arguments]) != 0
    assert said in " ".join(capsys.readouterr().err.split())
