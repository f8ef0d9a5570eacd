"""The version is written in one place, and everything that repeats it agrees."""

import re
import tomllib

import hotgrid

from .packages import ROOT


def first(pattern: str, file: str) -> str:
    found = re.search(pattern, (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE)
    assert found, f"{file} has no line like {pattern}"
    return found[1]


def test_the_build_reads_the_version_from_the_package():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    source = project["tool"]["scikit-build"]["metadata"]["version"]["input"]
    assert "version" in project["project"]["dynamic"]
    assert first(r'^__version__ = "(.+)"$', source) == hotgrid.__version__


def test_citation_and_changelog_agree():
    assert first(r'^version: "?([^"\s]+)"?$', "CITATION.cff") == hotgrid.__version__
    assert first(r"^## \[(.+?)\]", "CHANGELOG.md") == hotgrid.__version__
