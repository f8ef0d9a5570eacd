"""Kernels are tuned without a cache, and without measuring the machine again for each test."""

from collections.abc import Iterator
from types import SimpleNamespace

import pytest
import torch

from hotgrid.config import Config, override, use
from hotgrid.kernels import OPS, _compiling
from hotgrid.kernels.tune._trials import _trial


@pytest.fixture(autouse=True)
def apart_from_the_machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    limit = SimpleNamespace(bytes_per_second=1e10)
    monkeypatch.setattr(_trial, "copy_bandwidth", lambda device: limit)
    for tuned in OPS.values():
        tuned.forget()
    quick = {"autotune.cache": "none", "autotune.warmups": 1, "autotune.samples": 2}
    with use(Config()), override(quick):
        yield
    for tuned in OPS.values():
        tuned.forget()


@pytest.fixture
def traced_but_not_compiled(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """For what is in the traced graph alone; Inductor takes seconds."""
    monkeypatch.setattr(_compiling, "_BACKEND", "aot_eager")
    torch.compiler.reset()
    yield
    torch.compiler.reset()
