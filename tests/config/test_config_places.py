"""Where caches live."""

from pathlib import Path

import pytest

from hotgrid.config import File, cache_folder
from hotgrid.errors import ArgumentError, ConfigError


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A project with a working folder two levels down; caches of the user beside it."""
    deep = tmp_path / "project" / "a" / "b"
    deep.mkdir(parents=True)
    monkeypatch.chdir(deep)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def test_local_is_the_working_folder(tree: Path):
    assert cache_folder("local", "autotune") == tree / "project/a/b/.hotgrid/autotune"


@pytest.mark.parametrize("mark", ["pyproject.toml", "hotgrid.toml"])
def test_project_is_the_nearest_marked_folder(tree: Path, mark: str):
    (tree / "pyproject.toml").touch()
    (tree / "project" / mark).touch()
    assert cache_folder("project", "autotune") == tree / "project/.hotgrid/autotune"
    (tree / "project/a" / mark).touch()
    assert cache_folder("project", "autotune") == tree / "project/a/.hotgrid/autotune"


def test_without_a_project_the_global_place_is_used(tree: Path):
    assert cache_folder("project", "autotune") == tree / "cache/hotgrid/autotune"


def test_global_follows_the_xdg_specification(tree: Path, monkeypatch: pytest.MonkeyPatch):
    assert cache_folder("global", "compile") == tree / "cache/hotgrid/compile"
    monkeypatch.setenv("HOME", "/home/me")
    for unset in ("", "relative/path"):
        monkeypatch.setenv("XDG_CACHE_HOME", unset)
        assert cache_folder("global", "compile") == Path("/home/me/.cache/hotgrid/compile")


def test_a_named_path_is_taken_as_it_is(tree: Path):
    assert cache_folder(File(Path("/data/tuned")), "autotune") == Path("/data/tuned")
    assert cache_folder(File(Path("tuned")), "autotune") == tree / "project/a/b/tuned"


def test_nothing_is_created(tree: Path):
    before = sorted(tree.rglob("*"))
    for place in ("local", "project", "global", File(tree / "x")):
        cache_folder(place, "autotune")
    assert sorted(tree.rglob("*")) == before


def test_errors_say_what_to_do(monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(ArgumentError, match="`place` is none: there is no cache"):
        cache_folder("none", "autotune")
    with pytest.raises(ArgumentError, match="did you mean `global`"):
        cache_folder("globl", "autotune")  # pyright: ignore[reportArgumentType]
    for name in ("", ".", "..", "a/b", "a\0"):
        with pytest.raises(ArgumentError, match="`name` must be one part of a path"):
            cache_folder("local", name)

    def no_home():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", no_home)
    with pytest.raises(ConfigError, match="set XDG_CACHE_HOME"):
        cache_folder("global", "autotune")
