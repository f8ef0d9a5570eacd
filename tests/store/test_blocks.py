"""Checksums: the same with threads and by hand, and neighbouring changes are detected."""

import errno
import fcntl
import hashlib
import os
import struct
import tempfile
import threading
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings, strategies as st

from hotgrid.errors import DamagedError
from hotgrid.store._shard import _block_writer, blocks_of, check_blocks
from hotgrid.store._shard._block_writer import BlockWriter
from hotgrid.store._shard._blocks import block_sum

ROW = 8 * 1024


def slow_sum(data: bytes) -> str:
    """What `block_sum` says it is, word by word."""
    rows = [data[i : i + ROW] for i in range(0, len(data) - len(data) % ROW, ROW)]
    words = [struct.unpack("<1024Q", row) for row in rows]
    columns = [sum(column) % 2**64 for column in zip(*words, strict=True)] or [0] * 1024
    totals = [sum(row) % 2**64 for row in words]
    text = struct.pack("<1024Q", *columns) + struct.pack(f"<{len(totals)}Q", *totals)
    return hashlib.blake2b(text + data[len(rows) * ROW :], digest_size=8).hexdigest()


def noise(size: int, seed: int = 0) -> bytes:
    return hashlib.shake_128(str(seed).encode()).digest(size)


@given(st.sampled_from([0, 1, 7, 8, ROW - 1, ROW, ROW + 1, 5 * ROW + 13]), st.integers(0, 9))
@settings(max_examples=20)
def test_it_matches_its_name(size: int, seed: int):
    data = noise(size, seed)
    assert block_sum(data) == block_sum(memoryview(bytearray(data))) == slow_sum(data)


@given(st.data())
def test_changes_near_each_other_are_seen(data: st.DataObject):
    """Bit flips, words that move, sectors that are zeroed or swapped."""
    right = noise(4 * ROW + 100, 1)
    wrong = bytearray(right)
    kind = data.draw(st.sampled_from(["bits", "swap", "zero", "shift"]))
    if kind == "bits":
        for place in data.draw(st.sets(st.integers(0, len(right) - 1), min_size=1, max_size=3)):
            wrong[place] ^= data.draw(st.integers(1, 255))
    else:
        size = data.draw(st.sampled_from([8, 512, 4096, ROW]))
        a = data.draw(st.integers(0, len(right) // size - 2)) * size
        b = data.draw(st.integers(a // size + 1, len(right) // size - 1)) * size
        if kind == "swap":
            wrong[a : a + size], wrong[b : b + size] = right[b : b + size], right[a : a + size]
        elif kind == "zero":
            wrong[a : a + size] = bytes(size)
        else:
            wrong[a:b] = right[a + 1 : b] + right[a : a + 1]
    assert block_sum(bytes(wrong)) != block_sum(right)


@given(st.lists(st.integers(0, 9000), max_size=20), st.sampled_from([4096, 8192]))
@settings(max_examples=30)
def test_a_file_is_its_stream_however_that_is_cut(sizes: list[int], block: int):
    data = bytearray(noise(sum(sizes) + 1))
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(_block_writer, "BLOCK", block)
        path = Path(folder) / "file"
        with BlockWriter(path, len(data)) as writer:
            place = 0
            for size in [*sizes, 1]:
                writer.add(torch.frombuffer(data, dtype=torch.uint8)[place : place + size])
                place += size
            sums = writer.finish()
        assert path.read_bytes() == data
    assert sums == [block_sum(bytes(data[i : i + block])) for i in range(0, len(data), block)]


def test_a_file_system_that_only_says_it_writes_directly_is_no_trouble(tmp_path, monkeypatch):
    write, refused = os.pwrite, []

    def pwrite(descriptor: int, data: memoryview, place: int) -> int:
        if fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_DIRECT:
            refused.append(place)
            raise OSError(errno.EINVAL, "Invalid argument")
        return write(descriptor, data[:3000], place)  # and it takes a little at a time

    monkeypatch.setattr(os, "pwrite", pwrite)
    monkeypatch.setattr(_block_writer, "BLOCK", 4096)
    data = bytearray(noise(10_000))
    with BlockWriter(tmp_path / "file", len(data)) as writer:
        writer._go_direct(True)
        writer.add(torch.frombuffer(data, dtype=torch.uint8))
        writer.finish()
    assert (tmp_path / "file").read_bytes() == data
    assert refused


def test_the_caller_gets_the_errors_of_writer_threads(tmp_path: Path, monkeypatch):
    """At once, and not after all has been tried; and no thread is left behind."""
    tried: list[int] = []

    def full(descriptor: int, data: memoryview, place: int) -> int:
        tried.append(place)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(_block_writer, "BLOCK", 4096)
    monkeypatch.setattr(os, "pwrite", full)
    before = threading.active_count()
    with (
        pytest.raises(OSError, match="No space left"),
        BlockWriter(tmp_path / "file", 4096 * 1000) as writer,
    ):
        writer.add(torch.zeros(4096 * 1000, dtype=torch.uint8))
    assert len(tried) < 50
    assert threading.active_count() == before


def test_the_first_bad_block_is_named_and_others_need_not_be_good(tmp_path: Path):
    data = bytearray(noise(45_000))
    sums = [block_sum(bytes(data[i : i + 10_000])) for i in range(0, 45_000, 10_000)]
    path = tmp_path / "file"
    data[25_000] ^= 1
    data[44_999] ^= 1
    path.write_bytes(data)
    check_blocks(path, sums, 10_000, [0, 1, 3])
    check_blocks(path, sums, 10_000, [])
    with pytest.raises(DamagedError, match="the 10000 bytes from 20000 on"):
        check_blocks(path, sums, 10_000, range(5))
    with pytest.raises(DamagedError, match="the 10000 bytes from 40000 on"):
        check_blocks(path, sums, 10_000, [4])


def test_blocks_of_a_range():
    assert list(blocks_of(0, 0, 10)) == []
    assert list(blocks_of(0, 10, 10)) == [0]
    assert list(blocks_of(9, 11, 10)) == [0, 1]
    assert list(blocks_of(10, 11, 10)) == [1]
