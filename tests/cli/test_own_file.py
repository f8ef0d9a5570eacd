"""Mistakes in a model's own file are told by line, without a traceback."""

from pathlib import Path

import pytest

from .command import run

MODEL = """
import hotgrid as hg
from hotgrid.grid import total


class Mine(hg.Model):
    fields = (hg.Field("prey"), hg.Field("hunters"))
    rate = hg.Parameter(0.1)

    def step(self, state, inputs, params):
        return {name: handle.here for name, handle in state.items()}

"""


@pytest.mark.parametrize(
    ("method", "said"),
    [
        (
            """
    def step(self, state, inputs, params):
        return {"prey": state["pray"].here}
""",
            "mine.py:15: `Mine.step` fails with KeyError: 'pray' (`return {\"prey\": "
            'state["pray"].here}`); `state` has prey, hunters; did you mean `prey`?',
        ),
        (
            """
    def step(self, state, inputs, params):
        return {"prey": state["prey"].here * params["rat"]}
""",
            "; `params` has rate; did you mean `rate`?",
        ),
        (
            """
    def initial(self, size, generator):
        return {"prey": nothing}
""",
            "mine.py:15: `Mine.initial` fails with NameError: name 'nothing' is not defined",
        ),
        (
            """
    @hg.observable
    def all_prey(self, state):
        return total(state["prey"], 3)
""",
            "mine.py:16: `Mine.all_prey` fails with TypeError: ",
        ),
        (
            """
    @hg.view
    def ratio(self, state):
        return state["prey"].above
    picture = "ratio"
""",
            "mine.py:16: `Mine.ratio` fails with AttributeError: ",
        ),
    ],
)
def test_the_line_of_a_mistake(
    method: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    (tmp_path / "mine.py").write_text(MODEL + method)
    out = ["--out", str(tmp_path / "out"), "--export", "png"]
    size = ["--size", "12x12", "--steps", "3", "--device", "cpu", "-c", "compile.enabled=off"]
    assert run(["run", f"{tmp_path}/mine.py:Mine", *size, *out]) == 1
    err = capsys.readouterr().err
    assert said in " ".join(err.split())


def test_mistakes_of_ours_keep_their_traceback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def broken(*_: object, **__: object) -> None:
        raise KeyError("a bug")

    monkeypatch.setattr("hotgrid.grid.run.perform", broken)
    with pytest.raises(KeyError, match="a bug"):
        run(["run", "heat", "--size", "12x12", "--out", str(tmp_path / "out")])


def test_a_file_named_from_its_folder_is_told_with_the_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    (tmp_path / "mine.py").write_text(MODEL + "    u = hg.Field('u', boundary='neuman')\n")
    monkeypatch.chdir(tmp_path)
    assert run(["run", "mine.py:Mine", "--out", "out"]) == 1
    err = " ".join(capsys.readouterr().err.split())
    assert "mine.py:13: the file fails with ArgumentError: `boundary`" in err


def test_a_name_that_is_in_a_package_is_told_with_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    (tmp_path / "mine.py").write_text(MODEL + "    inputs = (hg.Input('wall'),)\n")
    assert run(["run", f"{tmp_path}/mine.py:Mine", "--out", f"{tmp_path}/out"]) == 1
    err = " ".join(capsys.readouterr().err.split())
    assert "has no attribute 'Input'" in err
    assert "other names are in these packages, such as hotgrid.grid.Input" in err


def test_a_change_without_a_value_at_the_start(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    (tmp_path / "mine.py").write_text(MODEL)
    options = ["--set", "rate=0.2 @ 100", "--out", f"{tmp_path}/out"]
    assert run(["run", f"{tmp_path}/mine.py:Mine", *options]) == 1
    err = " ".join(capsys.readouterr().err.split())
    assert "the value at the start comes first: `0.1 -> 0.2 @ 100`" in err
