"""The file that explains every key."""

import os
import re
import tomllib
from pathlib import Path

import pytest

from hotgrid.config import Config, default_toml, load, write_default_toml
from hotgrid.errors import ConfigError

DOCS = Path(__file__).parents[2] / "docs"


def uncommented(text: str):
    return re.sub(r"^#(?=[^ #\n])", "", text, flags=re.MULTILINE)


def test_as_it_is_it_changes_nothing(tmp_path: Path):
    path = tmp_path / "hotgrid.toml"
    path.write_text(default_toml())
    config = load(file=path, environ={})
    assert config == Config()
    assert {setting.origin.kind for setting in config.settings()} == {"default"}


def test_uncommented_it_says_every_default(tmp_path: Path):
    path = tmp_path / "hotgrid.toml"
    path.write_text(uncommented(default_toml()))
    config = load(file=path, environ={})
    assert config == Config()
    assert {setting.origin.kind for setting in config.settings()} == {"file"}
    table = tomllib.loads(path.read_text())
    for setting in config.settings():
        section, key = setting.key.split(".")
        assert table[section][key] == setting.plain()
        assert type(table[section][key]) is type(setting.plain())


def test_it_shows_every_meaning():
    prose = " ".join(default_toml().replace("\n# ", " ").split())
    for setting in Config().settings():
        assert setting.meaning in prose


def test_the_example_of_a_component_is_valid(tmp_path: Path):
    path = tmp_path / "hotgrid.toml"
    path.write_text("".join(re.findall(r"^#     (.*\n)", default_toml(), re.MULTILINE)))
    assert load(file=path, environ={}).logging.of("autotune")[0] == "debug"


def test_writing_does_not_replace_unless_forced(tmp_path: Path):
    path = tmp_path / "hotgrid.toml"
    write_default_toml(path)
    assert path.read_text() == default_toml()
    path.write_text("mine")
    with pytest.raises(ConfigError, match="exists and is left as it is; `--force` replaces it"):
        write_default_toml(path)
    assert path.read_text() == "mine"
    write_default_toml(path, force=True)
    assert path.read_text() == default_toml()
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_stays_a_link(tmp_path: Path):
    (tmp_path / "real.toml").write_text("mine")
    link = tmp_path / "hotgrid.toml"
    link.symlink_to("real.toml")
    write_default_toml(link, force=True)
    assert link.is_symlink()
    assert (tmp_path / "real.toml").read_text() == default_toml()


def test_what_cannot_be_written_is_reported_and_leaves_nothing(tmp_path: Path):
    with pytest.raises(ConfigError, match=r"cannot be written: there is no folder `.*missing`"):
        write_default_toml(tmp_path / "missing" / "hotgrid.toml")
    with pytest.raises(ConfigError, match="is a folder; name a file, such as"):
        write_default_toml(tmp_path, force=True)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ConfigError, match="is not a plain file"):
        write_default_toml(tmp_path / "pipe", force=True)
    assert list(tmp_path.iterdir()) == [tmp_path / "pipe"]


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "hotgrid.toml"
    path.write_text("mine")

    def disk_full(descriptor: int):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", disk_full)
    with pytest.raises(ConfigError, match="No space left on device"):
        write_default_toml(path, force=True)
    assert path.read_text() == "mine"
    assert list(tmp_path.iterdir()) == [path]


def test_the_docs_list_every_key_and_their_example_loads(tmp_path: Path):
    reference = (DOCS / "reference" / "config.md").read_text()
    guide = (DOCS / "guide" / "config.md").read_text()
    for setting in Config().settings():
        assert f"| `{setting.key}` |" in reference, setting.key
    [example, *_] = re.findall(r"```toml\n(.*?)```", guide, re.DOTALL)
    path = tmp_path / "hotgrid.toml"
    path.write_text(example)
    assert load(file=path, environ={}) != Config()
