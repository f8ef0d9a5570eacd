"""The folder of the benchmarks, from which tests import."""

import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def scripts(monkeypatch: pytest.MonkeyPatch):
    """The folder, importable for the length of a test."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(FOLDER)
    yield FOLDER
    # `report` and `options` are names that others may have too.
    for name in set(sys.modules) - before:
        if str(FOLDER) in str(getattr(sys.modules[name], "__file__", None)):
            del sys.modules[name]
