"""The configuration in force: blocks nest, and threads and tasks do not disturb each other."""

import asyncio
import threading
from contextvars import Context
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from hotgrid.config import Config, File, _current, current, load, override, use
from hotgrid.errors import ArgumentError, ConfigError


@pytest.fixture(autouse=True)
def defaults():
    with use(Config()):
        yield


def test_blocks_nest_and_end():
    with override({"autotune.level": "full", "memory.limit": 1}) as outer:
        assert current() is outer
        with override({"memory.limit": 0.5}):
            assert (current().autotune.level, current().memory.limit) == ("full", 0.5)
        assert current().memory.limit == 1.0
    assert current() == Config()


def test_a_block_ends_with_an_exception_too():
    with pytest.raises(KeyError), override({"memory.limit": 0.5}):
        raise KeyError
    assert current() == Config()


def test_origins_survive_an_override(tmp_path: Path):
    path = tmp_path / "hotgrid.toml"
    path.write_text("memory.limit = 0.5\nautotune.samples = 3")
    with use(load(file=path, environ={})), override({"memory.limit": 0.6}) as config:
        origins = {setting.key: str(setting.origin) for setting in config.settings()}
    assert config.file == path
    assert origins["memory.limit"] == "override"
    assert origins["autotune.samples"] == f"{path}:2"
    assert origins["kernels.check_mode"] == "default"


def test_a_bad_override_changes_nothing():
    values = {"autotune.levl": "full", "memory.limit": "0.5"}
    with pytest.raises(ConfigError) as caught, override(values):
        pass
    assert str(caught.value).splitlines()[1:] == [
        "  override: `autotune.levl` is an unknown key; did you mean `autotune.level`?",
        '  override: `memory.limit` is "0.5"; expected a number from 0.01 to 1',
    ]
    assert current() == Config()


@pytest.mark.parametrize(
    ("values", "text"), [(None, "None"), (5, "5"), ({1: 2}, "{1 = 2}"), ("memory", '"memory"')]
)
def test_values_must_be_a_mapping_from_words(values: Any, text: str):
    with pytest.raises(ArgumentError) as caught, override(values):
        pass
    assert str(caught.value).startswith(f"`values` is {text}; expected a dict from dotted keys")


def test_values_are_written_as_in_toml(tmp_path: Path):
    values = {
        "logging.targets": ["stdout", {"file": tmp_path / "a"}, File(tmp_path / "b")],
        "logging.components.grid.level": "debug",
        "cluster.margin_depth": 4,
    }
    with override(values) as config:
        assert config.logging.targets == ("stdout", File(tmp_path / "a"), File(tmp_path / "b"))
        with override({"logging.components.grid.targets": [], "logging.level": "off"}) as inner:
            assert inner.logging.of("grid") == ("debug", ())
        assert config.cluster.margin_depth == 4


def test_threads_have_their_own_overrides():
    inside, seen = threading.Barrier(2, timeout=30), {}

    def work(limit: float):
        with use(Config()), override({"memory.limit": limit}):
            inside.wait()
            seen[limit] = current().memory.limit
            inside.wait()

    threads = [threading.Thread(target=work, args=(limit,)) for limit in (0.25, 0.75)]
    with override({"memory.limit": 0.5}):
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert current().memory.limit == 0.5
    assert seen == {0.25: 0.25, 0.75: 0.75}


def test_tasks_inherit_and_do_not_disturb_each_other():
    async def work(limit: float, turn: asyncio.Event, other: asyncio.Event):
        before = current().memory.limit
        with override({"memory.limit": limit}):
            turn.set()
            await other.wait()
            return before, current().memory.limit, await asyncio.to_thread(_limit)

    async def both():
        first, second = asyncio.Event(), asyncio.Event()
        return await asyncio.gather(work(0.2, first, second), work(0.3, second, first))

    with override({"memory.limit": 0.1}):
        assert asyncio.run(both()) == [(0.1, 0.2, 0.2), (0.1, 0.3, 0.3)]


def _limit():
    return current().memory.limit


def test_outside_of_blocks_a_process_loads_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    path = tmp_path / "hotgrid.toml"
    monkeypatch.setenv("HOTGRID_CONFIG", str(path))
    monkeypatch.setattr(_current, "_of_process", cache(_current._of_process.__wrapped__))
    outside = Context()
    path.write_text("memory.limit = 2")
    with pytest.raises(ConfigError, match=r"hotgrid\.toml:1: `memory\.limit` is 2"):
        outside.run(current)
    path.write_text("memory.limit = 0.5")
    first = outside.run(current)
    assert first.memory.limit == 0.5
    path.write_text("memory.limit = 0.6")
    assert outside.run(current) is first
