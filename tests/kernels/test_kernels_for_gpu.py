"""Kernels for a GPU, without one: interpreted, and compiled."""

import os
import subprocess
import sys
from pathlib import Path

import pytest


def run_apart(script: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Triton reads its switches once, when it is imported."""
    return subprocess.run(
        [sys.executable, str(Path(__file__).with_name(script))],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


@pytest.mark.parametrize("op", ["topk", "gemv", "codebook"])
def test_they_do_what_the_reference_does(op: str):
    found = run_apart(f"triton_{op}_twins.py", TRITON_INTERPRET="1")
    assert found.returncode == 0, found.stdout + found.stderr[-2000:]
    assert "wrong: []" in found.stdout


@pytest.mark.parametrize(("op", "count"), [("topk", 16), ("gemv", 20), ("codebook", 18)])
def test_they_can_be_compiled(op: str, count: int):
    found = run_apart(f"triton_{op}_compiles.py")
    assert found.returncode == 0, found.stderr[-2000:]
    assert f"{count} kernels" in found.stdout
