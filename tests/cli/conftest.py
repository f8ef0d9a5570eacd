"""Every test of the command line runs in an empty folder, without settings from outside."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from hotgrid.config import _current


@pytest.fixture(autouse=True)
def untouched_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    for name in os.environ:
        if name.startswith("HOTGRID_") or name in ("FORCE_COLOR", "CXX"):
            monkeypatch.delenv(name)
    _current._of_process.cache_clear()
    yield
    _current._of_process.cache_clear()
