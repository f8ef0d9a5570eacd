"""Figures in the docs are those of benchmarks/results, to the digits shown."""

import json
import re
from itertools import product
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
XEON = "intel-r--xeon-r--processor"
Row = dict[str, Any]


def results(name: str) -> list[Row]:
    return json.loads((ROOT / "benchmarks" / "results" / f"{name}.json").read_text())["rows"]


def table(page: str, first: str, number: int = 0) -> list[list[str]]:
    """The cells of a table of numbers, by how its head begins, without the head."""
    text = (ROOT / "docs" / "reference" / f"{page}.md").read_text("utf-8")
    found = [part for part in text.split("\n\n") if part.startswith(first)][number]
    return [[cell.strip() for cell in line[1:-1].split("|")] for line in found.splitlines()[2:]]


def expect(cell: str, *values: float) -> None:
    """Compare the numbers of a cell with values, to half of the last digit shown."""
    shown = re.findall(r"\d[\d,]*(?:\.\d+)?", cell)
    assert len(shown) == len(values), cell
    for text, value in zip(shown, values, strict=True):
        digits = len(text.partition(".")[2])
        assert abs(float(text.replace(",", "")) - value) <= 0.5001 * 10**-digits, (cell, value)


@pytest.mark.parametrize(
    ("number", "files"),
    [
        (0, ["topk-cpu-neoverse-n1", f"topk-cuda-{XEON}"]),
        (1, [f"topk-cpu-{XEON}"]),
    ],
)
def test_top_k(number: int, files: list[str]):
    rows = table("kernels_numbers", "| k, axis, shape", number)
    for at, file in enumerate(files):
        for shown, row in zip(rows, results(file), strict=True):
            assert shown[0] == f"{row['k']}, {row['axis']}, {row['shape']}"
            for cell, key in zip(
                shown[1 + 4 * at :], ("torch ms", "hotgrid ms", "ratio", "wanted"), strict=False
            ):
                expect(cell, row[key])


@pytest.mark.parametrize(
    ("number", "file"),
    [(0, f"convolve-cpu-one-thread-{XEON}---2-50ghz"), (1, f"convolve-cuda-{XEON}")],
)
def test_convolve(number: int, file: str):
    known = {(row["side"], row["radius"]): row for row in results(file)}
    for radius, *cells in table("kernels_numbers", "| radius", number):
        for at, side in enumerate((512, 1024)):
            row = known[side, int(radius)]
            windows, spectra, ours = cells[3 * at : 3 * at + 3]
            expect(windows, row["windows ms"])
            expect(spectra, row["spectra ms"])
            expect(ours, row["hotgrid ms"])
            assert ours.endswith(f"`{row['candidate']}`")


@pytest.mark.parametrize(("head", "output"), [("arrays", "flat"), ("lists", "list")])
def test_tokens(head: str, output: str):
    known = {
        (row["who"], row["encoding"], row["text"]): row
        for row in results("tokens-speed-neoverse-n1")
        if row["output"] == output and row["threads"] == 1
    }
    for name, *cells in table("tokens_numbers", f"| {head}, cold / warm"):
        columns = product(("cl100k_base", "o200k_base"), ("english", "mixed"))
        for cell, column in zip(cells, columns, strict=True):
            row = known[(name, *column)]
            expect(cell, row["cold MB/s"], row["warm MB/s"])


def test_the_time_of_a_token_in_the_guide_of_chat():
    text = (ROOT / "docs" / "guide" / "chat_serve.md").read_text("utf-8")
    found = re.search(r"takes ([\d.]+) ms for a token in\s+float32, and ([\d.]+) ms", text)
    assert found is not None
    for shown, form in zip(found.groups(), ("", "int8-"), strict=True):
        name = f"chat-generate-small-{form}cpu-{XEON}---2-50ghz"
        expect(shown, results(name)[0]["processor ms"])
