"""Every example runs as a user would run it, on a small grid, and leaves a picture."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.py"))
PICTURES = {".png", ".svg", ".gif"}
# On a grid as small as that, compiling takes longer than all steps.
QUICKLY = {**os.environ, "HOTGRID_COMPILE_ENABLED": "off"}


@pytest.mark.parametrize(
    "example",
    [
        pytest.param(path, marks=[pytest.mark.long] * (number % 4 > 0), id=path.name)
        for number, path in enumerate(EXAMPLES)
    ],
)
def test_it_runs_and_leaves_a_picture(example: Path, tmp_path: Path):
    command = [sys.executable, "-W", "error", str(example), "--out", str(tmp_path)]
    done = subprocess.run(
        [*command, "--size", "32"],
        cwd=tmp_path,
        env=QUICKLY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    pictures = [path for path in tmp_path.iterdir() if path.suffix in PICTURES]
    assert pictures, f"{example.name} wrote only {list(tmp_path.iterdir())}"
    assert all(path.stat().st_size > 1000 for path in pictures)


def test_examples_are_numbered_in_the_order_to_read_them():
    assert EXAMPLES
    assert all(re.fullmatch(r"\d\d_[a-z_]+\.py", example.name) for example in EXAMPLES)
