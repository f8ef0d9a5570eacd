"""Every example runs as a user would run it, on a small grid, and leaves a picture."""

import gzip
import os
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.py"))
PICTURES = {".png", ".svg", ".gif"}
# On a grid as small as that, compiling takes longer than all steps.
QUICKLY = {**os.environ, "HOTGRID_COMPILE_ENABLED": "off"}


def tiny_fashion(folder: Path) -> None:
    """IDX files as Fashion-MNIST has them, of pictures that are easy to tell apart."""
    chance = random.Random(0)
    for name, count in (("train", 240), ("t10k", 40)):
        classes = bytes(chance.randrange(10) for _ in range(count))
        pictures = b"".join(
            bytes(min(255, 24 * each + chance.randrange(16)) for _ in range(8 * 8))
            for each in classes
        )
        sizes = [n.to_bytes(4, "big") for n in (count, 8, 8)]
        images = b"\0\0\x08\x03" + b"".join(sizes) + pictures
        (folder / f"{name}-images-idx3-ubyte").write_bytes(images)
        labels = gzip.compress(b"\0\0\x08\x01" + sizes[0] + classes)
        (folder / f"{name}-labels-idx1-ubyte.gz").write_bytes(labels)


# What an example needs that is not on every machine.
PREPARED = {"50_fashion.py": ("--data", tiny_fashion)}
# One of a kind for `make test`; all of them take minutes.
QUICK = ("10_heat.py",)


@pytest.mark.parametrize(
    "example",
    [
        pytest.param(path, marks=[pytest.mark.long] * (path.name not in QUICK), id=path.name)
        for path in EXAMPLES
    ],
)
def test_it_runs_and_leaves_a_picture(example: Path, tmp_path: Path):
    command = [sys.executable, "-W", "error", str(example), "--out", str(tmp_path)]
    if example.name in PREPARED:
        option, prepare = PREPARED[example.name]
        (tmp_path / "data").mkdir()
        prepare(tmp_path / "data")
        command += [option, str(tmp_path / "data")]
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
