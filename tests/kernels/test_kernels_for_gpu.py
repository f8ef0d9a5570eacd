"""Kernels for a GPU, without one: interpreted, and compiled."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from hotgrid.kernels._gemv._triton import WALKING_GPU
from hotgrid.kernels.tune import Call


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


@pytest.mark.long
@pytest.mark.parametrize("op", ["topk", "gemv", "codebook"])
def test_they_do_what_the_reference_does(op: str):
    found = run_apart(f"triton_{op}_twins.py", TRITON_INTERPRET="1")
    assert found.returncode == 0, found.stdout + found.stderr[-2000:]
    assert "wrong: []" in found.stdout


@pytest.mark.long
@pytest.mark.parametrize(("op", "count"), [("topk", 16), ("gemv", 20), ("codebook", 18)])
def test_they_can_be_compiled(op: str, count: int):
    found = run_apart(f"triton_{op}_compiles.py")
    assert found.returncode == 0, found.stderr[-2000:]
    assert f"{count} kernels" in found.stdout


@pytest.mark.parametrize(
    ("layout", "cols", "count", "applies"),
    [
        ("rows", 2**29, 1, True),
        ("columns", 2**29, 1, True),
        ("strided", 64, 1, False),
        # Vectors are counted in 32 bits.
        ("columns", 2**29, 6, False),
        ("rows", 64, 9, False),
    ],
)
def test_gemv_is_for_what_its_kernels_can_count(
    layout: str, cols: int, count: int, applies: bool
):
    call = Call(
        op="gemv",
        dtype="float16",
        device=torch.device("cuda"),
        layout=layout,
        sizes={"rows": 4, "cols": cols, "count": count},
        settings={"x": "float16"},
    )
    assert WALKING_GPU.applies(call) is applies
