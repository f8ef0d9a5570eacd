from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from hotgrid import _native
from hotgrid.config import override
from hotgrid.errors import ArgumentError
from hotgrid.kernels import Bandwidth, copy_bandwidth, kept_bandwidth
from hotgrid.kernels.tune._measure import _bandwidth

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


@pytest.fixture
def measurements(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[list[int]]:
    """The sizes of buffers that were measured; each copy is a little faster than the last."""
    sizes: list[int] = []

    def measure(size_bytes: int, repeats: int) -> Bandwidth:
        sizes.append(size_bytes)
        return Bandwidth(device="cpu", bytes_per_second=1e9 + len(sizes), method="torch")

    monkeypatch.setattr(_bandwidth, "_cpu", measure)
    with override({"autotune.cache": {"file": str(tmp_path)}}):
        yield sizes


def another_process() -> None:
    _bandwidth._measured.cache_clear()


def test_it_is_measured_once_for_a_machine_and_kept(measurements: list[int], tmp_path: Path):
    assert kept_bandwidth("cpu") is None
    found = copy_bandwidth("cpu")
    another_process()
    assert copy_bandwidth("cpu") == kept_bandwidth("cpu") == found
    assert len(measurements) == 1
    [file] = tmp_path.rglob("copy-bandwidth-*.json")
    file.write_text("{ damaged")
    another_process()
    assert kept_bandwidth("cpu") is None
    assert copy_bandwidth("cpu") == kept_bandwidth("cpu") != found


def test_measured_again_the_larger_figure_is_kept(
    measurements: list[int], monkeypatch: pytest.MonkeyPatch
):
    first = copy_bandwidth("cpu")
    faster = copy_bandwidth("cpu", again=True)
    assert faster.bytes_per_second > first.bytes_per_second
    slow = Bandwidth(device="cpu", bytes_per_second=1.0, method="torch")
    monkeypatch.setattr(_bandwidth, "_cpu", lambda size_bytes, repeats: slow)
    assert copy_bandwidth("cpu", again=True) == kept_bandwidth("cpu") == faster


def test_what_another_machine_measured_is_not_used(
    measurements: list[int], monkeypatch: pytest.MonkeyPatch
):
    copy_bandwidth("cpu")
    monkeypatch.setattr("platform.node", lambda: "elsewhere")
    assert kept_bandwidth("cpu") is None


def test_without_a_cache_it_is_measured_once_for_a_process(
    measurements: list[int], tmp_path: Path
):
    with override({"autotune.cache": "none"}):
        assert copy_bandwidth("cpu") == copy_bandwidth("cpu")
    assert len(measurements) == 1
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize(("cache_mib", "buffer_mib"), [(36, 72), (4, 16), (512, 256)])
def test_buffers_are_larger_than_the_last_caches_and_not_more(
    cache_mib: int, buffer_mib: int, measurements: list[int], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(_bandwidth, "_last_level_caches", lambda: cache_mib * 2**20)
    monkeypatch.setattr(_bandwidth, "_available_memory", lambda: 2**36)
    copy_bandwidth("cpu")
    assert measurements == [buffer_mib * 2**20]


def test_the_last_caches_of_all_processors_count(tmp_path: Path):
    for cpu in range(4):
        for index, (level, size, shared) in enumerate(
            [("1", "32K", str(cpu)), ("2", "1024K", str(cpu)), ("3", "8192K", str(cpu // 2))]
        ):
            folder = tmp_path / f"cpu{cpu}" / "cache" / f"index{index}"
            folder.mkdir(parents=True)
            (folder / "level").write_text(f"{level}\n")
            (folder / "size").write_text(f"{size}\n")
            (folder / "shared_cpu_list").write_text(f"{shared}\n")
    assert _bandwidth._last_level_caches(tmp_path) == 2 * 8192 * 1024
    assert _bandwidth._last_level_caches(tmp_path / "none") == 32 * 2**20
