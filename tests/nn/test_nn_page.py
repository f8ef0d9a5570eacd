"""The examples in docstrings and on the guide page run and print what they say."""

import doctest
from pathlib import Path

import pytest
import torch
from torch import nn

import hotgrid.nn

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "nn.md"
NAMES = {n: value for n, value in vars(hotgrid.nn).items() if not n.startswith("_")}
EXAMPLES = [name for name, value in NAMES.items() if ">>>" in (value.__doc__ or "")]


def run(example: doctest.DocTest):
    assert example.examples
    report: list[str] = []
    doctest.DocTestRunner().run(example, out=report.append)
    assert not report, "".join(report)


@pytest.mark.parametrize("name", EXAMPLES)
def test_docstrings(name: str):
    names = {**NAMES, "torch": torch, "nn": nn}
    run(doctest.DocTestParser().get_doctest(NAMES[name].__doc__, names, name, None, 0))


def test_there_are_examples():
    assert {"tree", "select", "query", "Activation", "Norm", "initialize"} <= set(EXAMPLES)


def test_docs_page():
    # The closing fence of a code block would read as expected output.
    text = PAGE.read_text(encoding="utf-8").replace("```", "\n```")
    text = "\n".join("" if line.startswith("```") else line for line in text.splitlines())
    run(doctest.DocTestParser().get_doctest(text, {}, PAGE.name, str(PAGE), 0))


def test_docs_page_names_what_is_public():
    text = PAGE.read_text(encoding="utf-8")
    assert [
        name
        for name in NAMES
        if f"`{name}" not in text and name not in ("Node", "Tree", "Query")
    ] == []
