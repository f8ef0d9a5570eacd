from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from hotgrid import _native
from hotgrid.errors import ArgumentError
from hotgrid.kernels import Bandwidth, copy_bandwidth
from hotgrid.kernels.tune import _bandwidth

SMALL = 2**20


@pytest.fixture(autouse=True)
def fresh_measurements():
    _bandwidth._measured.cache_clear()
    yield
    _bandwidth._measured.cache_clear()


def test_the_cpu_copies_something_every_second():
    found = copy_bandwidth("cpu", size_bytes=SMALL, repeats=3)
    assert found.device == "cpu"
    assert found.bytes_per_second > 0
    assert found.method in ("torch", "native")
    assert found.gigabytes_per_second == found.bytes_per_second / 1e9


def test_it_is_measured_once_for_each_device_and_size():
    first = copy_bandwidth("cpu", size_bytes=SMALL, repeats=2)
    assert copy_bandwidth(torch.device("cpu", 0), size_bytes=SMALL, repeats=2) is first
    assert copy_bandwidth("cpu", size_bytes=2 * SMALL, repeats=2) is not first


def test_the_default_device_is_the_fastest_kind_here():
    expected = "cuda" if torch.cuda.is_available() else "cpu"
    assert copy_bandwidth(size_bytes=SMALL, repeats=2).device.startswith(expected)


def test_read_and_write_are_both_counted(monkeypatch: pytest.MonkeyPatch):
    ticks = iter([0.0, 2.0, 10.0, 10.5, 20.0, 21.0])
    monkeypatch.setattr(_bandwidth, "time", SimpleNamespace(perf_counter=lambda: next(ticks)))
    monkeypatch.setattr(_native, "available", lambda: False)
    found = copy_bandwidth("cpu", size_bytes=SMALL, repeats=3)
    assert found == Bandwidth(device="cpu", bytes_per_second=2 * SMALL / 0.5, method="torch")


@pytest.mark.parametrize(("rate", "method"), [(1.0, "torch"), (1e18, "native")])
def test_the_better_of_torch_and_the_native_core_is_kept(
    rate: float, method: str, monkeypatch: pytest.MonkeyPatch
):
    core = SimpleNamespace(copy_bandwidth=lambda size_bytes, repeats: rate)
    monkeypatch.setattr(_native, "available", lambda: True)
    monkeypatch.setattr(_native, "core", lambda: core)
    found = copy_bandwidth("cpu", size_bytes=SMALL, repeats=2)
    assert found.method == method
    assert found.bytes_per_second >= rate


@pytest.mark.parametrize("device", ["gpu", "cuda:99", "meta", torch.device("cuda", 99), 1.5])
def test_a_device_that_is_not_here_is_an_error_that_lists_those_that_are(device: Any):
    with pytest.raises(ArgumentError) as error:
        copy_bandwidth(device)
    assert repr(str(device)) in str(error.value)
    assert "expected one of cpu" in str(error.value)


@pytest.mark.parametrize("name", ["size_bytes", "repeats"])
@pytest.mark.parametrize("value", [0, "x", 1.5, True, [4]])
def test_sizes_and_repeats_must_be_positive_ints(name: str, value: Any):
    with pytest.raises(ArgumentError) as error:
        copy_bandwidth("cpu", **{name: value})
    smallest = 4 if name == "size_bytes" else 1
    assert str(error.value) == f"`{name}` must be an int of at least {smallest}, got {value!r}"


@pytest.mark.parametrize("sign", [1, -1])
def test_a_size_that_python_cannot_print_is_still_refused_clearly(sign: int):
    with pytest.raises(ArgumentError, match=r"`size_bytes` must .* got -?0x10000"):
        copy_bandwidth("cpu", size_bytes=sign * 16**4000)


def test_numpy_ints_are_sizes_and_repeats():
    found = copy_bandwidth("cpu", size_bytes=SMALL, repeats=2)
    assert copy_bandwidth("cpu", size_bytes=np.int64(SMALL), repeats=np.int8(2)) is found


@pytest.mark.parametrize("size", [501, 2**50])
def test_two_buffers_must_fit_into_memory(size: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(_bandwidth, "_available_memory", lambda: 1001)
    with pytest.raises(ArgumentError, match="in the 1001 free bytes of cpu: give at most 500"):
        copy_bandwidth("cpu", size_bytes=size)
    assert copy_bandwidth("cpu", size_bytes=500, repeats=1).bytes_per_second > 0


@pytest.mark.parametrize(
    ("available_mib", "size_mib"), [(100_000, 256), (1024, 128), (64, 16), (0, 16)]
)
def test_where_memory_is_short_the_buffers_shrink(available_mib: int, size_mib: int):
    assert _bandwidth._fitting(256 * 2**20, available_mib * 2**20) == size_mib * 2**20
