"""The table itself: rows, the choice of checks, and what happens when one goes wrong."""

import math
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from hotgrid.errors import ArgumentError, UnstableError
from hotgrid.grid.validate import Row, _validate, check_names, validate
from hotgrid.grid.validate._check import Check, Terms
from hotgrid.grid.validate._row import compared


def rows_of(terms: Terms) -> Iterator[Row]:
    yield compared("right", 1, 1.05, limit=0.1, source="by hand", setting="none")
    yield compared("wrong", 1, 1.2, limit=0.1, source="by hand", setting="none")


def unstable(terms: Terms) -> Iterator[Row]:
    yield compared("first", 0, 0, limit=0, source="by hand")
    raise UnstableError("it blew up at step 7")


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> None:
    table = (
        Check("both", True, rows_of),
        Check("slow", False, rows_of),
        Check("bang", True, unstable),
    )
    monkeypatch.setattr(_validate, "CHECKS", table)


@given(reference=st.floats(-10, 10), value=st.floats(-10, 10), limit=st.floats(0, 10))
def test_a_row_passes_when_the_error_is_within_the_limit(
    reference: float, value: float, limit: float
):
    row = compared("x", reference, value, limit=limit, source="")
    assert row.error == abs(value - reference)
    assert row.passed == (row.error <= limit)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_what_is_not_finite_never_passes(value: float):
    assert not compared("x", 1, value, limit=1e300, source="").passed


def test_a_record_is_what_json_promises():
    record = compared("x", 1, 1.5, limit=0.1, source="s", setting="t").record()
    assert record == {
        "name": "x",
        "reference": 1,
        "value": 1.5,
        "error": 0.5,
        "limit": pytest.approx(0.1),
        "pass": False,
        "source": "s",
        "setting": "t",
        "seconds": 0,
    }
    assert compared("x", 1, math.nan, limit=0, source="").record()["value"] is None


@pytest.mark.usefixtures("checks")
def test_rows_come_in_order_and_each_check_is_announced():
    started: list[str] = []
    rows = list(validate(device="cpu", only=["slow", "both"], starting=started.append))
    assert [row.name for row in rows] == ["right", "wrong", "right", "wrong"]
    assert [row.passed for row in rows] == [True, False, True, False]
    assert started == ["both", "slow"]


@pytest.mark.usefixtures("checks")
def test_a_simulation_that_blows_up_is_a_row_that_fails():
    first, last = validate(device="cpu", only=["bang"])
    assert first.passed
    assert (last.name, last.passed, last.setting) == ("bang", False, "it blew up at step 7")
    assert last.record()["error"] is None


@pytest.mark.usefixtures("checks")
def test_the_quick_table_leaves_out_what_is_slow():
    assert check_names() == ["both", "slow", "bang"]
    assert check_names(quick=True) == ["both", "bang"]
    assert len(list(validate(quick=True, device="cpu"))) == 4


@pytest.mark.usefixtures("checks")
@pytest.mark.parametrize(
    ("only", "said"),
    [
        (
            "bth",
            r"there is no check `bth`; did you mean `both`\?",
        ),
        ("slow", "`slow` is not a quick check"),
    ],
)
def test_a_check_that_cannot_be_made_is_refused_before_anything_runs(only: str, said: str):
    with pytest.raises(ArgumentError, match=said):
        validate(quick=True, device="cpu", only=[only])


PAGE = Path(__file__).parents[3] / "docs" / "reference" / "validation.md"


def names_on_the_page() -> list[str]:
    """What stands before the colon in the first table of the page."""
    table = PAGE.read_text(encoding="utf-8").split("## How each value was computed")[0]
    lines = [line for line in table.splitlines() if line.endswith("| pass |")]
    return [line.split("|")[1].split(":")[0].strip() for line in lines]


def test_checks_have_the_names_of_the_page():
    found = {
        name: _validate.chosen(_validate.CHECKS, False, [name]) for name in names_on_the_page()
    }
    assert len(found) >= 20
    named = {check.name for checks in found.values() for check in checks}
    assert named | {"taylor-green-3d"} == set(check_names())
    assert "Not computed yet: `taylor-green-3d`" in PAGE.read_text(encoding="utf-8")
    assert [check.name for check in found["replicator"]] == ["replicator"]
    assert [check.name for check in found["cavity Re 400"]] == ["cavity-re-400"]


def test_old_names_of_checks_still_hold():
    old = ("gun", "fredkin", "plates", "double-shear", "ghia-100", "schaefer-turek-2d-2")
    found = [check.name for check in _validate.chosen(_validate.CHECKS, False, old)]
    assert found == [
        "gosper-gun", "replicator", "poiseuille", "couette", "double-shear-layer",
        "cavity-re-100", "cylinder-2d-2",
    ]  # fmt: skip


def test_a_device_that_is_not_there_is_refused_before_anything_runs():
    with pytest.raises(ArgumentError, match="the device 'abacus' cannot be used here"):
        validate(device="abacus")
