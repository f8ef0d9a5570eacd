"""Runs killed at random moments, in folders that hold earlier runs: `study_kills.py`."""

import subprocess
import sys
from pathlib import Path

import pytest

STUDY = Path(__file__).parents[2] / "benchmarks" / "study_kills.py"


def study(seed: int, count: int) -> str:
    command = [sys.executable, str(STUDY), "--count", str(count), "--seed", str(seed)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.long
def test_kills_change_nothing():
    """A rank, the launcher and all of them; while they start, and after a checkpoint."""
    said = study(seed=2, count=6)
    assert "6 of 6 kills left what an undisturbed run leaves" in said
    assert all(victim in said for victim in ("rank", "launcher", "all"))
