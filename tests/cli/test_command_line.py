import os
import subprocess
import sys
from pathlib import Path

import pytest

import hotgrid
from hotgrid.cli import main
from hotgrid.cli.doctor import _command as _doctor
from hotgrid.errors import ContractError

from .command import run


def python(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_help_lists_commands_options_examples_and_exit_codes(
    capsys: pytest.CaptureFixture[str],
):
    assert run(["--help"]) == 0
    text = capsys.readouterr().out
    for word in ("doctor", "config", "completion", "-c KEY=VALUE", "--version", "Examples:"):
        assert word in text
    for code in (
        "0    success",
        "1    something is wrong",
        "2    the command",
        "130  interrupted",
        "141  the reader",
    ):
        assert code in text


def test_no_arguments_is_help(capsys: pytest.CaptureFixture[str]):
    assert run([]) == 0
    assert "Usage: hotgrid COMMAND" in capsys.readouterr().out


def test_help_imports_neither_torch_nor_the_commands():
    done = python(
        "import sys; from hotgrid.cli._main import run; code = run(['--help'])\n"
        "heavy = {'torch', 'numpy', 'hotgrid.config', 'hotgrid.cli.doctor._command'}\n"
        "assert heavy.isdisjoint(sys.modules), heavy & set(sys.modules)\n"
        "sys.exit(code)"
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    "arguments",
    [["doctor"], ["completion"], ["config"], ["config", "show"], ["config", "init"]],
)
def test_every_command_has_help(arguments: list[str], capsys: pytest.CaptureFixture[str]):
    assert run([*arguments, "--help"]) == 0
    assert f"Usage: hotgrid {' '.join(arguments)}" in capsys.readouterr().out


def test_version(capsys: pytest.CaptureFixture[str]):
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"hotgrid {hotgrid.__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["docotr"], 'Did you mean "doctor"?'),
        (["config", "shwo"], 'Did you mean "show"?'),
        (["--c", "logging.level=debug", "doctor"], "Unknown option: --c. Did you mean -c?"),
        (["--vresion"], "Unknown option: --vresion. Did you mean --version?"),
        (["config", "--colour=red"], "Unknown option: --colour. `--help` lists"),
        (["doctor", "--jsn"], "Did you mean --json?"),
        (["completion", "bsh"], 'Did you mean "bash"?'),
        (["doctor", "now"], "`now` is more than this command takes"),
        (["completion"], "requires an argument"),
        (["-c"], "-c requires an argument"),
        (["-c", "logging", "doctor"], "`-c logging` must be KEY=VALUE"),
        (["-c", "=debug", "doctor"], "`-c =debug` must be KEY=VALUE"),
    ],
)
def test_a_line_that_is_not_understood_is_one_sentence_and_exit_2(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
):
    assert run(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("hotgrid: ")
    assert said in err
    assert err.count("\n") == 1


def test_flag_wins_over_environment_over_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    (tmp_path / "hotgrid.toml").write_text('[logging]\nlevel = "error"\n')

    def origin_line(*flags: str) -> str:
        assert run([*flags, "config", "show"]) == 0
        lines = capsys.readouterr().out.splitlines()
        return next(line for line in lines if line.startswith("logging.level"))

    monkeypatch.setenv("HOTGRID_LOGGING_LEVEL", "info")
    assert "info" in origin_line()
    assert "debug" in origin_line("-c", "logging.level=off", "-c", "logging.level = debug")
    monkeypatch.delenv("HOTGRID_LOGGING_LEVEL")
    assert "error" in origin_line("-c", "memory.limit=0.5")


def test_the_flag_holds_for_one_run_only(capsys: pytest.CaptureFixture[str]):
    run(["-c", "logging.level=debug", "config", "show"])
    assert "debug" in capsys.readouterr().out
    run(["config", "show"])
    assert "debug" not in capsys.readouterr().out


@pytest.mark.parametrize("setting", ["loging.level=debug", "logging.level=debgu"])
def test_a_bad_setting_is_a_message_and_exit_1(
    setting: str, capsys: pytest.CaptureFixture[str]
):
    assert run(["-c", setting, "config", "show"]) == 1
    err = capsys.readouterr().err
    assert err.startswith("hotgrid: ")
    assert "did you mean" in err
    assert "Traceback" not in err


def test_a_broken_file_does_not_stop_commands_that_need_no_settings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    (tmp_path / "hotgrid.toml").write_text("[logging\n")
    assert run(["completion", "bash"]) == 0
    assert run(["config", "show"]) == 1
    assert "hotgrid.toml" in capsys.readouterr().err


def test_every_error_of_hotgrid_is_a_message_and_exit_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def fail(**_):
        raise ContractError("shape `(2, 3)` does not meet `h w c`")

    monkeypatch.setattr(_doctor, "diagnose", fail)
    assert run(["doctor"]) == 1
    assert capsys.readouterr().err == "hotgrid: shape `(2, 3)` does not meet `h w c`\n"


def test_other_exceptions_keep_their_traceback(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(_doctor, "diagnose", lambda **_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        run(["doctor"])


def test_interruption_is_exit_130(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def interrupt(**_):
        raise KeyboardInterrupt

    monkeypatch.setattr(_doctor, "diagnose", interrupt)
    assert run(["doctor"]) == 130
    assert capsys.readouterr().err == "hotgrid: interrupted\n"


@pytest.mark.parametrize(("leaves", "code"), [("return 130", 130), ("sys.exit(143)", 143)])
def test_a_step_that_is_being_compiled_is_not_waited_for(leaves: str, code: int):
    """Torch aborts the process where the interpreter ends under it."""
    script = f"""if True:
        import atexit, sys, threading
        from hotgrid.cli import _main
        def run(arguments):
            {leaves}
        _main.run = run
        atexit.register(print, "the interpreter ended")
        busy = threading.Event()
        threading.Thread(target=busy.wait, name="hotgrid-view", daemon=True).start()
        _main.main()
    """
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (code, "", "")


def test_main_exits_with_the_code_of_its_arguments(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(sys, "argv", ["hotgrid", "docotr"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert "doctor" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["--help"], ["completion", "bash"]])
def test_a_reader_that_goes_away_ends_it_quietly(arguments: list[str]):
    reader, writer = os.pipe()
    os.close(reader)
    program = "import sys; from hotgrid.cli import main; sys.argv[0] = 'hotgrid'; main()"
    command = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.parametrize(
    ("closing", "said"),
    [
        (
            "sys.stdout = open('/dev/full', 'w')",
            "a file or the output cannot be read or written (No space left on device).",
        ),
        ("sys.stdout = None", "standard output is closed; redirect it to /dev/null"),
    ],
)
@pytest.mark.parametrize("arguments", [["config", "show"], ["--version"]])
def test_an_output_that_takes_nothing_is_a_message_and_exit_1(
    closing: str, said: str, arguments: list[str]
):
    program = f"import sys; from hotgrid.cli import main; {closing}; main()"
    done = python(program, *arguments)
    assert done.returncode == 1
    assert done.stderr.startswith(f"hotgrid: {said}")
    assert done.stderr.count("\n") == 1


def test_an_os_error_that_is_not_from_the_system_keeps_its_traceback(
    monkeypatch: pytest.MonkeyPatch,
):
    def fail(**_):
        raise OSError("libsomething.so: undefined symbol")

    monkeypatch.setattr(_doctor, "diagnose", fail)
    with pytest.raises(OSError, match="undefined symbol"):
        run(["doctor"])


@pytest.mark.parametrize("part", ["cyclopts", "rich"])
def test_without_its_parts_the_command_line_says_what_to_install(part: str):
    done = python(
        "import sys; sys.modules[sys.argv[1]] = None\n"
        "import hotgrid.cli\n"
        "sys.argv = ['hotgrid', 'doctor']\n"
        "hotgrid.cli.main()",
        part,
    )
    assert done.returncode == 1
    assert done.stderr == (
        f"hotgrid: the command line needs {part}: run `pip install {part}`; "
        "the Python API works without.\n"
    )


@pytest.mark.parametrize(
    "command",
    [["tokens", "count"], ["run", "--resume"], ["config", "show", "--file"], ["unknown"]],
)
def test_control_characters_in_names_are_not_obeyed(
    command: list[str], capsys: pytest.CaptureFixture[str]
):
    assert run([*command, "no\x1b[31m\x07\u202ecar\x9b"]) != 0
    text = capsys.readouterr().err
    assert text and not any(each in text for each in "\x1b\x07\u202e\x9b")


def test_control_characters_are_written_out(capsys: pytest.CaptureFixture[str]):
    assert run(["run", "--resume", "no\x1b[31m\x9b"]) == 1
    assert r"no\x1b[31m\x9b" in capsys.readouterr().err
