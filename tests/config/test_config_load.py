"""Finding the file, precedence, origins, and the text of every error."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from hotgrid.config import Config, File, find_file, find_problems, load
from hotgrid.config._config import keys
from hotgrid.config._layers import variable
from hotgrid.errors import ConfigError

Write = Callable[[str | bytes], Path]


@pytest.fixture
def write(tmp_path: Path):
    def write_file(text: str | bytes):
        path = tmp_path / "hotgrid.toml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write_file


def complaints(path: Path, **more: Any):
    """The problems of a file without the path in front."""
    found = find_problems(file=path, environ={}, **more)
    return [str(problem).removeprefix(f"{path}:") for problem in found]


def test_without_anything_the_defaults_hold(tmp_path: Path):
    config = load(tmp_path, environ={})
    assert config == Config()
    assert config.file is None
    assert {str(setting.origin) for setting in config.settings()} == {"default"}


def test_the_nearest_file_upward_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    (tmp_path / "hotgrid.toml").write_text('autotune.level = "full"')
    assert load(deep, environ={}).autotune.level == "full"
    (tmp_path / "a" / "hotgrid.toml").write_text("")
    assert load(deep, environ={}).autotune.level == "balanced"
    monkeypatch.chdir(deep)
    assert find_file() == tmp_path / "a" / "hotgrid.toml"
    assert load(environ={}).file == tmp_path / "a" / "hotgrid.toml"


def test_flag_over_environment_over_file_over_default(write: Write):
    path = write('[autotune]\nlevel = "minimal"\nsamples = 20\nwarmups = 5\n')
    environ = {"HOTGRID_AUTOTUNE_LEVEL": "extensive", "HOTGRID_AUTOTUNE_SAMPLES": "30"}
    config = load(file=path, environ=environ, flags={"autotune.level": "full"})
    by_key = {setting.key: setting for setting in config.settings()}
    assert (config.autotune.level, config.autotune.samples) == ("full", 30)
    assert (config.autotune.warmups, config.autotune.stop_at_roofline) == (5, 0.9)
    origins = {key: (by_key[key].origin.kind, str(by_key[key].origin)) for key in by_key}
    assert origins["autotune.level"] == ("flag", "-c autotune.level")
    assert origins["autotune.samples"] == ("environment", "HOTGRID_AUTOTUNE_SAMPLES")
    assert origins["autotune.warmups"] == ("file", f"{path}:4")
    assert origins["autotune.cache"] == ("default", "default")


@given(st.data())
@settings(deadline=None, max_examples=60)
def test_precedence_holds_for_every_key(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
):
    """Each key takes its value from the highest layer that names it."""
    texts = {
        "compile.max_fusion_size": ["1", "2", "3"],
        "autotune.level": ["minimal", "extensive", "full"],
        "memory.limit": ["0.25", "0.5", "0.75"],
        "cluster.margin_depth": ["auto", "4", "8"],
        "autotune.cache": ["none", "local", "file:/x"],
        "logging.components.grid.level": ["off", "error", "debug"],
    }
    layers = st.dictionaries(st.sampled_from(sorted(texts)), st.integers(0, 2))
    file, environ, flags = data.draw(layers), data.draw(layers), data.draw(layers)
    path = tmp_path_factory.mktemp("layers") / "hotgrid.toml"
    path.write_text("".join(f"{key} = {_toml(texts[key][n])}\n" for key, n in file.items()))
    config = load(
        file=path,
        environ={variable(key): texts[key][n] for key, n in environ.items()},
        flags={key: texts[key][n] for key, n in flags.items()},
    )
    got = {setting.key: setting for setting in config.settings()}
    for key, choices in texts.items():
        for kind, layer in (("flag", flags), ("environment", environ), ("file", file)):
            if key in layer:
                assert got[key].origin.kind == kind
                assert got[key].plain() == _plain(choices[layer[key]])
                break
        else:
            assert key not in got or got[key].origin.kind == "default"


def _toml(text: str):
    if text.startswith("file:"):
        return f'{{file = "{text[5:]}"}}'
    return text if text[0].isdigit() else f'"{text}"'


def _plain(text: str):
    if text.startswith("file:"):
        return {"file": text[5:]}
    return float(text) if text[0].isdigit() else text


def test_relative_paths_in_the_file_start_at_its_folder(write: Write, tmp_path: Path):
    path = write('autotune.cache = {file = "../tuned"}\nlogging.targets = [{file = "run.log"}]')
    config = load(file=path, environ={})
    assert config.autotune.cache == File(tmp_path.parent / "tuned")
    assert config.logging.targets == (File(tmp_path / "run.log"),)


def test_all_problems_of_a_file_come_at_once(write: Write):
    path = write(
        "[autotune]\n"
        'levl = "full"\n'
        "samples = true\n"
        "\n"
        "[autotun]\n"
        "x = 1\n"
        "[kernels]\n"
        "level = 'full'\n"
        "colour = 'red'\n"
        "check_mode = [\n"
        "  1,\n"
        "]\n"
        "[memory]\n"
        "limit = 1.5\n"
    )
    assert complaints(path) == [
        "2: `autotune.levl` is an unknown key; did you mean `level`?",
        "3: `autotune.samples` is true; expected an integer from 1 to 10000",
        "5: `autotun` is an unknown section; did you mean `autotune`?",
        "8: `kernels.level` is an unknown key; did you mean `autotune.level`?",
        "9: `kernels.colour` is an unknown key; known: check_mode, choose",
        "10: `kernels.check_mode` is [1]; expected one of enforce, validate, auto",
        "14: `memory.limit` is 1.5; expected a number from 0.01 to 1",
    ]
    with pytest.raises(ConfigError) as caught:
        load(file=path, environ={})
    assert str(caught.value).startswith(
        f"7 problems in the settings:\n  {path}:2: `autotune.levl`"
    )


def test_sections_and_components_must_be_tables(write: Write):
    path = write(
        "autotune = 3\n"
        "logging.components = {autotun = {level = 'debug'}, mine = {level = 'deb'}}\n"
        "[[kernels]]\n"
    )
    assert complaints(path) == [
        "1: `autotune` is 3; expected a table, such as [autotune]",
        "2: `logging.components.autotun` has an unknown name `autotun`; "
        "did you mean `autotune`?",
        '2: `logging.components.mine.level` is "deb"; expected one of off, error, warning, '
        "info, debug; did you mean `debug`?",
        "3: `kernels` is [{}]; expected a table, such as [kernels]",
    ]


def test_bytes_that_are_not_utf8_are_located(write: Write):
    for mark in (b"", b"\xef\xbb\xbf"):
        assert complaints(write(mark + b'[autotune]\nlevel = "\xff"')) == [
            "2:10: byte 0xff is not UTF-8; save the file as UTF-8"
        ]


def test_a_byte_order_mark_and_windows_line_ends_are_fine(write: Write):
    path = write(b'\xef\xbb\xbf[autotune]\r\n\r\nlevel = "full"\r\n')
    config = load(file=path, environ={})
    assert [str(s.origin) for s in config.settings() if s.value == "full"] == [f"{path}:3"]


def test_syntax_errors_have_line_and_column(write: Write):
    assert complaints(write("[autotune]\nlevel = \n")) == [
        "2:9: is not valid TOML: Invalid value"
    ]


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("level = full", '; `full` must be written "full"'),
        ("level = info # inf is a number", '; `info` must be written "info"'),
        ("targets = ['stdout', stderr]", '; `stderr` must be written "stderr"'),
        ("enabled = True", "; `True` must be written true"),
        ('level = "full" now', ""),
    ],
)
def test_a_word_without_quotes_is_named(write: Write, line: str, hint: str):
    [complaint] = complaints(write(f"[logging]\n{line}\n"))
    assert complaint.startswith("2:")
    assert complaint.partition(";")[1] + complaint.partition(";")[2] == hint


def test_a_problem_is_one_line_whatever_the_key_holds(write: Write):
    [complaint] = complaints(write('[autotune]\n"a\\nb\\u001b" = 1\n'))
    assert complaint.startswith(r"2: `autotune.a\nb\x1b` is an unknown key; known: level,")


def test_huge_numbers_are_refused(write: Write):
    path = write("[autotune]\nsamples = 0x" + "f" * 5000)
    assert complaints(path) == [
        "2: `autotune.samples` is an integer of 20000 bits; expected an integer from 1 to 10000"
    ]
    assert complaints(write("[autotune]\nsamples = " + "9" * 5000))[0].startswith(
        "2: has a number"
    )


def test_a_folder_of_that_name_is_an_error(tmp_path: Path):
    (tmp_path / "hotgrid.toml").mkdir()
    with pytest.raises(ConfigError, match=r"hotgrid\.toml: is a folder, not a file"):
        load(tmp_path, environ={})


def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path):
    # A link in a circle fails for root too, where permissions would not.
    (tmp_path / "hotgrid.toml").symlink_to("hotgrid.toml")
    with pytest.raises(ConfigError, match=r"cannot be read \(.*symbolic links"):
        load(tmp_path, environ={})


def test_a_named_file_must_exist(tmp_path: Path):
    missing = tmp_path / "missing.toml"
    with pytest.raises(ConfigError, match=r"missing.toml: cannot be read \(No such file"):
        load(file=missing, environ={})
    with pytest.raises(ConfigError, match=r"\(No such file.*\); HOTGRID_CONFIG names it"):
        load(environ={"HOTGRID_CONFIG": str(missing)})
    with pytest.raises(ConfigError, match="cannot be read"):
        load(file=Path("a\0b"), environ={})


def test_the_argument_wins_over_the_variable_that_names_a_file(tmp_path: Path, write: Write):
    path = write("memory.limit = 0.5")
    other = tmp_path / "other.toml"
    other.write_text("memory.limit = 0.25")
    environ = {"HOTGRID_CONFIG": str(other)}
    assert load(tmp_path, environ=environ).memory.limit == 0.25
    assert load(file=path, environ=environ).memory.limit == 0.5
    assert load(tmp_path, environ={"HOTGRID_CONFIG": ""}).memory.limit == 0.5


def test_a_removed_working_folder_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(ConfigError, match="working folder no longer exists"):
        load(environ={})


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("autotune.levl", "is an unknown key; did you mean `autotune.level`?"),
        ("level", "is an unknown section; did you mean `autotune.level`?"),
        ("foo", "is an unknown section; known: compile, autotune, kernels,"),
        ("autotune.level.x", "is an unknown key; did you mean `autotune.level`?"),
        ("autotune", "is a section; name one of its keys, such as `autotune.level`"),
        (
            "logging.components.grid",
            "is a section; name one of its keys, such as `logging.comp",
        ),
        ("", "is an unknown section; known:"),
    ],
)
def test_unknown_flags(key: str, message: str):
    [problem] = find_problems(file=Path(os.devnull), environ={}, flags={key: "1"})
    assert str(problem).startswith(f"-c {key}: `{key}` {message}")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "AUTOTUNE_LEVL",
            "full",
            "is an unknown variable; did you mean HOTGRID_AUTOTUNE_LEVEL?",
        ),
        ("LOG_LEVEL", "info", "is an unknown variable; did you mean HOTGRID_LOGGING_LEVEL?"),
        ("NATIV", "off", "is an unknown variable; did you mean HOTGRID_NATIVE?"),
        ("THREAD", "3", "is an unknown variable; did you mean HOTGRID_THREADS?"),
        ("ISB", "x", "is an unknown variable; did you mean HOTGRID_ISA?"),
        ("VOCABDIR", "x", "is an unknown variable; did you mean HOTGRID_VOCAB_DIR?"),
        ("CONFG", "x", "is an unknown variable; did you mean HOTGRID_CONFIG?"),
        ("MEMORY_LIMIT", "a", '`memory.limit` is "a"; expected a number from 0.01 to 1'),
        ("AUTOTUNE_SAMPLES", "3.5", '`autotune.samples` is "3.5"; expected an integer from 1'),
        ("AUTOTUNE_LEVEL", "fulll", '`autotune.level` is "fulll"; expected one of minimal,'),
        (
            "LOGGING_COMPONENTS_GRID_LEVL",
            "info",
            "is an unknown variable; expected HOTGRID_LOGGI",
        ),
        (
            "LOGGING_COMPONENTS_AUTOTUN_LEVEL",
            "info",
            "`logging.components.autotun.level` has an unknown name `autotun`; did you mean",
        ),
    ],
)
def test_bad_variables(name: str, text: str, message: str):
    environ = {f"HOTGRID_{name}": text}
    [problem] = find_problems(file=Path(os.devnull), environ=environ)
    assert str(problem).startswith(f"HOTGRID_{name}: {message}")


@pytest.mark.parametrize(
    "name",
    ["VOCAB_DIR", "NATIVE", "THREADS", "ISA", "CONFIG", "SEED", "NATIVE_THREADS", "HOME", ""],
)
def test_other_variables_are_left_alone(name: str):
    environ = {f"HOTGRID_{name}": os.devnull, "HOTGRID": "x", "OTHER_AUTOTUNE_LEVEL": "x"}
    assert load(file=Path(os.devnull), environ=environ) == Config()


def test_an_empty_variable_is_not_set():
    assert load(file=Path(os.devnull), environ={"HOTGRID_MEMORY_LIMIT": " "}) == Config()


def test_every_key_has_its_own_variable():
    names = {variable(key) for key in keys()}
    assert len(names) == len(keys())
    assert "HOTGRID_AUTOTUNE_STOP_AT_ROOFLINE" in names


def test_components_from_variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    environ = {
        "HOTGRID_LOGGING_COMPONENTS_MY_MODEL_LEVEL": "debug",
        "HOTGRID_LOGGING_COMPONENTS_GRID_TARGETS": "stdout, file:logs/grid.log",
    }
    logging = load(file=Path(os.devnull), environ=environ).logging
    assert logging.of("my_model") == ("debug", ("stderr",))
    assert logging.of("grid") == ("warning", ("stdout", File(tmp_path / "logs" / "grid.log")))
    assert logging.of("another") == ("warning", ("stderr",))
