"""Attention in windows as one kernel: interpreted, compiled, and where it is used."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from hotgrid.vision import WindowAttention
from hotgrid.vision._layers import _shifted_windows


@pytest.mark.long
def test_the_kernel_agrees_with_the_plain_path(run_apart: Callable[..., str]):
    assert "6 cases, wrong: {}" in run_apart("triton_windows_twins.py", TRITON_INTERPRET="1")


@pytest.mark.long
def test_the_kernel_agrees_in_a_model_that_is_one_graph(run_apart: Callable[..., str]):
    found = run_apart("triton_windows_twins.py", "compiled", TRITON_INTERPRET="1")
    assert "1 cases, wrong: {}" in found


@pytest.mark.long
def test_the_kernel_compiles_to_tensor_cores(run_apart: Callable[..., str], tmp_path: Path):
    found = run_apart("triton_windows_compiles.py", TRITON_CACHE_DIR=str(tmp_path))
    assert "6 kernels" in found


@pytest.mark.parametrize(
    ("window", "size", "changed", "fits"),
    [
        (7, 32, {}, True),
        (8, 16, {"dtype": torch.bfloat16}, True),
        (9, 32, {}, False),
        (7, 8, {}, False),
        (7, 24, {}, False),
        (7, 32, {"is_cuda": False}, False),
        (7, 32, {"dtype": torch.float64}, False),
    ],
)
def test_the_kernel_is_for_small_windows_on_a_gpu(
    window: int, size: int, changed: dict[str, Any], fits: bool, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(_shifted_windows, "_TRITON", True)
    x: Any = SimpleNamespace(**{"is_cuda": True, "dtype": torch.float32, **changed})
    assert _shifted_windows.kernel_fits(x, window, size) is fits
    assert WindowAttention(2 * size, 2, window).has_kernel(x) is fits
    assert not WindowAttention(2 * size, 2, window, fused=False).has_kernel(x)
