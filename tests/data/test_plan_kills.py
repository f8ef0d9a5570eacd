"""A loader that is killed in the middle of an epoch continues with the same batches."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from hotgrid.data import ClassFolders, DecodeRandomCrop, Order, Plan

PROGRAM = Path(__file__).with_name("doomed_loader.py")


@pytest.fixture(scope="module")
def plan(tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("photos")
    draws = np.random.default_rng(0)
    for n in range(23):
        file = place / f"class-{n % 3}" / f"{n:03}.jpg"
        file.parent.mkdir(exist_ok=True)
        Image.fromarray(draws.integers(0, 256, (30, 40, 3), dtype=np.uint8)).save(file)
    file.write_bytes(b"damaged")
    made = Plan(ClassFolders(str(place)), order=Order(seed=3))
    made = made.then(DecodeRandomCrop(16, 12), "data", "pixels").yielding("pixels", "path")
    made.write(place / "plan.json")
    return place / "plan.json"


@pytest.fixture(scope="module")
def whole(plan, tmp_path_factory) -> list[str]:
    folder = tmp_path_factory.mktemp("whole")
    command = [sys.executable, str(PROGRAM), str(plan), "1", str(folder)]
    subprocess.run(command, check=True, capture_output=True)
    return [path.read_text() for path in sorted(folder.glob("*.txt"))]


@pytest.mark.slow
@pytest.mark.parametrize(
    "workers", [2, *(pytest.param(count, marks=pytest.mark.long) for count in (1, 7))]
)
def test_killed_and_resumed(plan, whole, workers, tmp_path):
    command = [sys.executable, str(PROGRAM), str(plan), str(workers), str(tmp_path)]
    with subprocess.Popen(
        [*command, "wait"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as doomed:
        for _ in range(6):
            assert doomed.stdout.readline()
            doomed.stdin.write("\n")
            doomed.stdin.flush()
        assert doomed.stdout.readline() == "7\n"
        doomed.kill()
    assert doomed.returncode == -9
    subprocess.run(command, check=True, capture_output=True)
    found = [path.read_text() for path in sorted(tmp_path.glob("*.txt"))]
    assert found == whole
    # Four batches an epoch; no two are the same.
    assert len({*whole}) == len(whole) == 12
