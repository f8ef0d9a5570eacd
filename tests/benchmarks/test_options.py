"""Every script in benchmarks/ takes the same options in the same way."""

import runpy
import sys
from pathlib import Path

import pytest
import torch

FOLDER = Path(__file__).parents[2] / "benchmarks"
SCRIPTS = sorted(
    path.name for path in FOLDER.glob("*.py") if "__main__" in path.read_text("utf-8")
)


@pytest.fixture
def run(scripts: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]):
    """Runs a script in this process; gives its exit code and what it printed."""

    def script(name: str, *arguments: str) -> tuple[int | str | None, str]:
        monkeypatch.setattr(sys, "argv", [name, *arguments])
        with pytest.raises(SystemExit) as ended:
            runpy.run_path(str(scripts / name), run_name="__main__")
        return ended.value.code, "".join(capfd.readouterr())

    return script


def test_there_are_scripts():
    assert {"bench_topk.py", "make_corpora.py", "study_validate.py"} <= set(SCRIPTS)


@pytest.mark.parametrize("name", SCRIPTS)
def test_help_shows_what_a_script_measures_and_its_devices(run, name):
    about = (FOLDER / name).read_text("utf-8").split('"""')[1]
    code, text = run(name, "--help")
    assert code == 0
    assert about.strip() in text
    assert "--device {cpu" in text


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_device_that_a_script_cannot_use_is_refused_by_name(run, name):
    code, text = run(name, "--device", "abacus")
    assert code == 2
    assert "'abacus' is not one of cpu" in text


def test_a_gpu_that_is_not_there_is_refused(run, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    code, text = run("bench_topk.py", "--device", "cuda")
    assert code == 2
    assert "torch finds no GPU here; use --device cpu" in text
