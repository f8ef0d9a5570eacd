"""The quick table: every row of it passes, and it has the rows it promises."""

import pytest

from hotgrid.grid.validate import check_names, validate

COMPILED = ("double-shear-layer", "conservation", "cavity-re-100", "cylinder-2d-1")
LONG = (
    *("shan-chen", "two-components", "central", "cumulant", "kbc"),
    *("rayleigh-benard", "porous-medium", "ball-array"),
    *("orbium", "digits-ca", "growing-ca", "ising"),
)
SMALL = [name for name in check_names(quick=True) if name not in COMPILED]


def failed(name: str) -> list[str]:
    rows = list(validate(quick=True, device="cpu", only=[name]))
    assert rows
    assert all(row.source and row.setting for row in rows)
    return [
        f"{row.name}: {row.value} instead of {row.reference}" for row in rows if not row.passed
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[pytest.mark.long] * (n in LONG)) for n in SMALL],
)
def test_small_checks_pass(name: str):
    assert failed(name) == []


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.compiles
@pytest.mark.parametrize("name", COMPILED)
def test_compiled_checks_pass(name: str):
    assert failed(name) == []


def test_the_full_table_has_what_the_quick_one_leaves_out():
    more = set(check_names()) - set(check_names(quick=True))
    assert more == {
        "acorn",
        "cavity-re-400",
        "cavity-re-1000",
        "cylinder-2d-2",
        "backward-facing-step",
        "taylor-green-3d",
    }
