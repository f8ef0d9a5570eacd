"""What the README, the tutorials and other pages show can be copied, pasted and run."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.md"))


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text("utf-8"), re.DOTALL)


def messages(page: Path) -> list[str]:
    """The errors that a page quotes, on one line each, from behind the line of code in them."""
    found = re.findall(
        r"^```(\w*)\n(.*?)^```$", page.read_text("utf-8"), re.DOTALL | re.MULTILINE
    )
    quoted = [" ".join(text.split()) for language, text in found if not language]
    return [text.rpartition("`) ")[2] for text in quoted]


def printed(page: Path, folder: Path, **variables: str) -> str:
    """What the Python examples of a page print, run as one program."""
    examples = blocks(page, "python")
    assert examples
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", "\n".join(examples)],
        cwd=folder,
        env=os.environ | variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_python_example_runs(tmp_path: Path):
    output = printed(ROOT / "README.md", tmp_path)
    # A thousand steps of diffusion leave next to nothing of white noise (0.2887 at first).
    found = re.search(r"([\d,]+) million cells a second, standard deviation (0\.\d+)", output)
    assert found, output
    assert 0 < float(found[2]) < 0.02


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(
            page, marks=[pytest.mark.long] * (page.stem != "first_steps"), id=page.stem
        )
        for page in TUTORIALS
    ],
)
def test_a_tutorial_prints_what_it_shows(page: Path, tmp_path: Path):
    output = printed(page, tmp_path, HOTGRID_COMPILE_ENABLED="off", OMP_NUM_THREADS="1")
    for shown in blocks(page, "text"):
        assert shown in output
    for message in messages(page):
        assert message in " ".join(output.split())


# Programs that need nothing but hotgrid, and are quick. Those of kernels, data and tensors run
# in the tests of these packages, and blocks with `>>>` in test_public_names.py.
PROGRAMS = {
    "guide/chat.md": [0],
    "guide/config.md": [0],
    "guide/grid_lbm.md": [8],
    "guide/rl.md": [1, 2],
    "guide/vision.md": [0, 1, 2, 3],
    "guide/web.md": [0],
    "reference/grid.md": [0],
    "reference/grid_lbm.md": [2],
}


@pytest.mark.slow
def test_programs_on_other_pages_run(tmp_path: Path):
    programs = {
        f"{page}, block {number}": blocks(ROOT / "docs" / page, "python")[number]
        for page, numbers in PROGRAMS.items()
        for number in numbers
    }
    assert not [name for name, program in programs.items() if ">>>" in program]
    run_all = "for name, program in PROGRAMS.items(): exec(compile(program, name, 'exec'), {})"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", f"PROGRAMS = {programs!r}\n{run_all}"],
        cwd=tmp_path,
        env=os.environ | {"HOTGRID_COMPILE_ENABLED": "off", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_the_home_page_of_the_docs_shows_the_same_smallest_example():
    first = [blocks(ROOT / page, "python")[0] for page in ("README.md", "docs/index.md")]
    assert first[0] == first[1]


def test_the_two_commands_are_there():
    text = (ROOT / "README.md").read_text()
    assert "make demo" in text
    assert "make test" in text
