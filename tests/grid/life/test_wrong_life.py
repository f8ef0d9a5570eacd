"""Rules, patterns and cells of the wrong kind; and patterns from files."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from hotgrid.errors import ArgumentError
from hotgrid.grid import Simulation
from hotgrid.grid.life import (
    Life,
    Life3D,
    Pattern,
    Rule,
    WindowRule,
    pattern,
    read_cells,
    read_rle,
    write_cells,
    write_rle,
)

GLIDER = pattern("glider")


def windows(rule: Any) -> None:
    Simulation(WindowRule(rule), size=(8, 8), compiled=False, device="cpu").run(1)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Life(""), "`` is not a rule: expected both `B` and `S`"),
        (lambda: Life(3), "`rule` must be a text such as `B3/S23`, .* got 3"),
        (lambda: Life3D(None), "`rule` must be a text such as `B3/S23`, .* got None"),
        (lambda: Life(pattern=3), r"`pattern` must be a name, a file .* got int; `Pattern\(ce"),
        (lambda: Life(pattern=torch.ones(3, 3)), "`pattern` must be a name, .* got Tensor"),
        (lambda: Life(pattern=[[1]]), "`pattern` must be a name, .* got list"),
        (lambda: Life(pattern=""), "there is no pattern ``"),
        (lambda: Life(pattern="none.rle"), "cannot read `none.rle`: No such file"),
        (lambda: Life(pattern="none.cells"), "cannot read `none.cells`: No such file"),
        (lambda: Life(pattern=Path("none")), "cannot read `none`: No such file"),
        (lambda: Life(packed="yes"), "`packed` must be True or False, got 'yes'"),
        (lambda: Life(age="no"), "`age` must be True or False, got 'no'"),
        (lambda: WindowRule(None), "`rule` must be a function of the windows .*, got None"),
        (lambda: WindowRule(len, radius=1.5), "`radius` must be a whole number, got 1.5"),
        (lambda: windows(lambda w: None), "`rule` must return a tensor of cells, got None"),
        (lambda: windows(lambda w: w), r"returned the shape \(\d+, \d+, 3, 3\) for .* `cells`"),
        (lambda: Rule(3, (2, 3)), "`birth` must be counts of neighbours, .* got 3"),
        (lambda: Rule((3,), "23"), "`survival` must be counts of neighbours, .* got '23'"),
        (lambda: Rule.parse(None), "`rule` must be a text"),
        (lambda: pattern(None), "a pattern is named by a text, such as `glider`, got None"),
        (lambda: read_rle(None), "`source` must be a text, or a file .*`.rle`, got None"),
        (lambda: read_cells(b"O"), "`source` must be a text, or a file .*`.cells`, got b'O'"),
        (lambda: write_rle("glider"), "`pattern` must be a Pattern, got 'glider'"),
        (lambda: write_cells(None), "`pattern` must be a Pattern, got None"),
        (lambda: Pattern("abc"), "`cells` of a pattern are a table of 0 and 1, got 'abc'"),
        (lambda: Pattern(torch.ones(2, 2), name=None), "a name or comment is one line"),
        (lambda: GLIDER.placed(8), r"`size` must be two whole numbers, .* got 8"),
        (lambda: GLIDER.placed((8, 8, 8)), r"`size` must be two .* got \(8, 8, 8\)"),
        (lambda: GLIDER.placed((8, 8), at=(1,)), r"`at` must be two whole .* got \(1,\)"),
        (lambda: GLIDER.placed((2, 8)), "does not fit .* take a `size` of at least 3 x 3"),
    ],
)
def test_it_is_refused_with_a_clear_message(make: Callable[[], Any], said: str):
    with pytest.raises(ArgumentError, match=said):
        make()


@pytest.mark.parametrize("kind", [str, Path])
@pytest.mark.parametrize("suffix", [".rle", ".cells"])
def test_a_pattern_comes_from_a_file(kind: Any, suffix: str, tmp_path: Path):
    path = tmp_path / f"mine{suffix}"
    (write_rle if suffix == ".rle" else write_cells)(GLIDER, path)
    life = Life(pattern=kind(path))
    assert torch.equal(life.pattern.cells, GLIDER.cells)
    assert str(life.rule) == "B3/S23"
