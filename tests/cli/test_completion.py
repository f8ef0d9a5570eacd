import subprocess
from pathlib import Path

import pytest

from .command import run


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_knows_commands_and_options(shell: str, capsys: pytest.CaptureFixture[str]):
    assert run(["completion", shell]) == 0
    script = capsys.readouterr().out
    for word in ("doctor", "config", "completion", "quick"):
        assert word in script


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["hotgrid", "do"], ["doctor"]),
        (["hotgrid", "config", ""], ["show", "init", "check"]),
        (["hotgrid", "doctor", "--qu"], ["--quick"]),
    ],
)
def test_bash_completes_with_it(
    words: list[str], offered: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path
):
    run(["completion", "bash"])
    script = tmp_path / "hotgrid.bash"
    script.write_text(capsys.readouterr().out)
    program = (
        'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); '
        '_hotgrid; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    command = ["bash", "--norc", "-c", program, "bash", str(script), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert sorted(done.stdout.split()) == sorted(offered)


def test_install_writes_the_script_and_says_where(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert run(["completion", "bash", "--install"]) == 0
    said = capsys.readouterr().out
    script = tmp_path / ".local/share/bash-completion/completions/hotgrid"
    assert f"Wrote {script}." in said
    assert "doctor" in script.read_text()
    assert str(script) in (tmp_path / ".bashrc").read_text()


def test_install_for_zsh_says_what_else_it_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert run(["completion", "zsh", "--install"]) == 0
    assert "fpath=" in (tmp_path / ".zshrc").read_text()
    assert "  autoload -Uz compinit && compinit\n" in capsys.readouterr().out


def test_install_into_a_home_that_takes_no_files_is_a_message_and_exit_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    home = tmp_path / "home"
    home.write_text("a file, not a folder")
    monkeypatch.setenv("HOME", str(home))
    assert run(["completion", "bash", "--install"]) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"hotgrid: `{home}")
    assert said.endswith("cannot be read or written (Not a directory).\n")
