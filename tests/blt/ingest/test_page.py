"""The page about ingest says what is so."""

import doctest
import re
from pathlib import Path

import pytest

from hotgrid.blt import MODALITIES
from hotgrid.blt._ingest._outputs._export import EXPORTS

PAGE = Path(__file__).parents[3] / "docs" / "guide" / "ingest.md"


def test_its_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    example = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, "page", None, 0)
    found = doctest.DocTestRunner().run(example)
    assert found.failed == 0
    assert found.attempted


def test_it_lists_every_modality_and_format():
    text = PAGE.read_text("utf-8")
    for name in [each.name for each in MODALITIES] + list(EXPORTS):
        assert f"`{name}`" in text or f"--to {name}" in text, name
