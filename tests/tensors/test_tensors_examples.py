"""The examples in the docstrings and on the docs page run and print what they say."""

import doctest
from pathlib import Path

import pytest
import torch

from hotgrid import tensors

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "tensors.md"
NAMES = {name: value for name, value in vars(tensors).items() if not name.startswith("_")}


def run(example: doctest.DocTest):
    assert example.examples
    report: list[str] = []
    doctest.DocTestRunner().run(example, out=report.append)
    assert not report, "".join(report)


@pytest.mark.parametrize("name", NAMES)
def test_docstrings(name: str):
    parser = doctest.DocTestParser()
    names = {**NAMES, "torch": torch}
    run(parser.get_doctest(NAMES[name].__doc__ or "", names, name, None, 0))


def test_docs_page():
    # The closing fence of a code block would read as expected output.
    text = PAGE.read_text(encoding="utf-8").replace("```", "\n```")
    text = "\n".join("" if line.startswith("```") else line for line in text.splitlines())
    run(doctest.DocTestParser().get_doctest(text, {}, PAGE.name, str(PAGE), 0))


def test_docs_page_names_every_function():
    text = PAGE.read_text(encoding="utf-8")
    assert [name for name in NAMES if f"`{name}" not in text] == []
