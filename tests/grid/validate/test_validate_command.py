"""`hotgrid validate`: exit codes, JSON, and an HTML page that escapes everything."""

import json
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

from hotgrid.grid.validate import Row, _validate
from hotgrid.grid.validate._check import Check, Terms
from hotgrid.grid.validate._row import compared

from ...cli.command import run  # noqa: TID252  tests are not a package

NASTY = "<script>alert('x')</script> & \"quotes\""


def passing(terms: Terms) -> Iterator[Row]:
    yield compared("good", 30, 30, limit=0, source="by hand", setting="none")


def failing(terms: Terms) -> Iterator[Row]:
    yield compared(NASTY, 1, float("nan"), limit=0.1, source=NASTY, setting=NASTY)


@pytest.fixture(autouse=True)
def two_checks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    table = (Check("passing", True, passing), Check("failing", True, failing))
    monkeypatch.setattr(_validate, "CHECKS", table)
    monkeypatch.chdir(tmp_path)


def test_all_rows_pass_is_exit_0(capsys: pytest.CaptureFixture[str]):
    assert run(["validate", "--device", "cpu", "--only", "passing"]) == 0
    text = capsys.readouterr().out
    assert text.splitlines()[0].split() == ["reference", "value", "error", "limit"]
    assert text.splitlines()[1].split() == ["good", "30", "30", "0", "0", "pass"]
    assert "All 1 rows pass" in text


def test_the_checks_are_listed_without_making_them(capsys: pytest.CaptureFixture[str]):
    assert run(["validate", "--list"]) == 0
    assert capsys.readouterr().out == "passing\nfailing\n"


def test_a_row_that_fails_is_exit_1(capsys: pytest.CaptureFixture[str]):
    assert run(["validate", "--device", "cpu"]) == 1
    text = capsys.readouterr().out
    assert "FAIL" in text
    assert "1 of 2 rows fail" in text


def test_json_is_a_list_of_rows(capsys: pytest.CaptureFixture[str]):
    assert run(["validate", "--device", "cpu", "--json"]) == 1
    good, bad = json.loads(capsys.readouterr().out)
    assert list(good)[:6] == ["name", "reference", "value", "error", "limit", "pass"]
    assert (good["name"], good["value"], good["pass"]) == ("good", 30, True)
    assert (bad["name"], bad["value"], bad["pass"]) == (NASTY, None, False)


class Tags(HTMLParser):
    """Every tag and every text of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_the_page_escapes_everything_and_has_no_scripts():
    assert run(["validate", "--device", "cpu", "--html", "deep/truth.html"]) == 1
    page = Tags()
    page.feed(Path("deep/truth.html").read_text("utf-8"))
    assert "script" not in page.tags
    assert page.tags.count("tr") == 3
    assert page.texts.count(NASTY) == 3
    assert any("1 of 2 rows pass" in text for text in page.texts)
    assert [path.name for path in Path("deep").iterdir()] == ["truth.html"]


def test_the_page_needs_nothing_else():
    run(["validate", "--device", "cpu", "--html", "truth.html"])
    text = Path("truth.html").read_text("utf-8")
    assert "src=" not in text
    assert "href=" not in text
    assert "url(" not in text


@pytest.mark.parametrize("place", [".", "file/truth.html"])
def test_a_page_that_cannot_be_written_is_reported_before_anything_runs(
    place: str, capsys: pytest.CaptureFixture[str]
):
    Path("file").write_text("not a folder")
    assert run(["validate", "--device", "cpu", "--html", place]) == 1
    said = capsys.readouterr()
    assert f"cannot write `{place}`" in said.err
    assert said.out == ""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--only", "pasing"], "did you mean `passing`?"),
        (["--device", "abacus"], "the device 'abacus' cannot be used here"),
    ],
)
def test_bad_arguments_are_one_sentence(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
):
    assert run(["validate", *arguments]) == 1
    assert said in capsys.readouterr().err
