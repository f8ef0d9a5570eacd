"""Damaged or forged checkpoints are refused, and the last good one is found."""

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings, strategies as st

from hotgrid.errors import ArgumentError, DamagedError, StoreError
from hotgrid.store import Checkpoints, Shard, _manifest

from .ranks import memory_folder, on_ranks

SHARD, MANIFEST = "rank-00000.safetensors", "manifest.json"


def filled(folder: str | Path) -> Checkpoints:
    """Steps 1 and 2."""
    checkpoints = Checkpoints(folder)
    for step in (1, 2):
        tensors = {"u": torch.full((3, 4), step), "v": torch.ones(5, dtype=torch.bool)}
        checkpoints.save(step, tensors, extra={"loss": 0.5})
    return checkpoints


def step_folder(folder: Path, step: int = 2) -> Path:
    return folder / f"step-{step:09d}"


def flip(path: Path, place: int, bits: int = 1) -> None:
    data = bytearray(path.read_bytes())
    data[place] ^= bits
    path.write_bytes(data)


def extend(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"x")


DAMAGES: dict[str, tuple[Callable[[Path], Any], str, str]] = {
    "cut short": (lambda p: os.truncate(p / SHARD, 40), SHARD, "has 40 bytes, and .* were"),
    "emptied": (lambda p: os.truncate(p / SHARD, 0), SHARD, "has 0 bytes"),
    "grown": (lambda p: extend(p / SHARD), SHARD, "were written"),
    "data flipped": (
        lambda p: flip(p / SHARD, -1),
        SHARD,
        "checksum of the 8388608 bytes from 0",
    ),
    "header flipped": (lambda p: flip(p / SHARD, 60), SHARD, "is damaged: "),
    "length flipped": (lambda p: flip(p / SHARD, 6), SHARD, "is damaged: "),
    "file gone": (lambda p: (p / SHARD).unlink(), SHARD, "is missing: .* not whole"),
    "file a folder": (
        lambda p: ((p / SHARD).unlink(), (p / SHARD).mkdir()),
        SHARD,
        "not a regular file",
    ),
    "file a link": (
        lambda p: (
            (p / SHARD).rename(p.parent / "elsewhere"),
            (p / SHARD).symlink_to(p.parent / "elsewhere"),
        ),
        SHARD,
        "not a regular file",
    ),
    "file a pipe": (
        lambda p: ((p / SHARD).unlink(), os.mkfifo(p / SHARD)),
        SHARD,
        "not a regular file",
    ),
    "manifest gone": (lambda p: (p / MANIFEST).unlink(), MANIFEST, "is missing$"),
    "manifest empty": (lambda p: os.truncate(p / MANIFEST, 0), MANIFEST, "is damaged: "),
    "manifest cut": (lambda p: os.truncate(p / MANIFEST, 99), MANIFEST, "is damaged: "),
    "no JSON": (lambda p: (p / MANIFEST).write_bytes(b"\xff\xfe"), MANIFEST, "is damaged: "),
    "deep JSON": (
        lambda p: (p / MANIFEST).write_bytes(b"[" * 200_000),
        MANIFEST,
        "is damaged: ",
    ),
    "long number": (
        lambda p: (p / MANIFEST).write_bytes(b"1" * 10_000),
        MANIFEST,
        "is damaged: ",
    ),
    "other JSON": (
        lambda p: (p / MANIFEST).write_text("[1]"),
        MANIFEST,
        "it is not a manifest",
    ),
    "extra changed": (
        lambda p: (p / MANIFEST).write_text(
            (p / MANIFEST).read_text().replace('"loss": 0.5', '"loss": 0.4')
        ),
        MANIFEST,
        "it does not have its own checksum",
    ),
    "of another step": (
        lambda p: (p / MANIFEST).write_bytes(
            (step_folder(p.parent, 1) / MANIFEST).read_bytes()
        ),
        MANIFEST,
        "its step is not 2",
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_named_and_the_step_before_is_used(tmp_path: Path, capsys, damage: str):
    checkpoints = filled(tmp_path)
    harm, file, text = DAMAGES[damage]
    harm(step_folder(tmp_path))
    with pytest.raises(DamagedError, match=text) as caught:
        checkpoints.load(2)
    assert str(step_folder(tmp_path) / file) in str(caught.value)
    assert capsys.readouterr().err == ""
    loaded = checkpoints.load()
    assert loaded.step == 1
    assert loaded.tensors["u"].unique().tolist() == [1]
    assert (
        f"hotgrid.store warning: step 2 is skipped: {caught.value}" in capsys.readouterr().err
    )


def test_a_tensor_to_fill_is_untouched_when_loading_fails(tmp_path: Path):
    checkpoints = filled(tmp_path)
    flip(step_folder(tmp_path) / SHARD, -1)  # in `v`
    u, v = torch.zeros(3, 4, dtype=torch.int64), torch.zeros(5, dtype=torch.bool)
    with pytest.raises(DamagedError):
        checkpoints.load(2, {"u": u, "v": v})
    assert not u.any()
    assert not v.any()


def test_when_nothing_is_good_all_reasons_are_reported(tmp_path: Path, capsys):
    checkpoints = filled(tmp_path)
    (step_folder(tmp_path, 1) / MANIFEST).unlink()
    os.truncate(step_folder(tmp_path, 2) / SHARD, 1)
    with pytest.raises(
        DamagedError, match=r"is damaged; begin .*\nstep 2: .*1 bytes.*\nstep 1: .*missing"
    ):
        checkpoints.load()
    assert checkpoints.latest() is None
    # `load` and `latest` find the same, and each step is reported once.
    assert capsys.readouterr().err.count("is skipped") == 2


def test_latest_looks_at_manifests_and_sizes(tmp_path: Path, capsys):
    checkpoints = filled(tmp_path)
    assert checkpoints.latest() == 2
    flip(step_folder(tmp_path) / SHARD, -1)
    assert checkpoints.latest() == 2
    os.truncate(step_folder(tmp_path) / SHARD, 100)
    assert checkpoints.latest() == 1
    assert "step 2 is skipped" in capsys.readouterr().err


def test_without_verify_only_what_costs_nothing_is_looked_at(tmp_path: Path):
    checkpoints = filled(tmp_path)
    flip(step_folder(tmp_path) / SHARD, -1)  # `v` is last
    found = checkpoints.load(2, ["v"], verify=False).tensors["v"]
    assert found.tolist() == [True] * 4 + [False]
    os.truncate(step_folder(tmp_path) / SHARD, 100)
    with pytest.raises(DamagedError, match="has 100 bytes"):
        checkpoints.load(2, verify=False)


def test_only_what_is_needed_is_read(tmp_path: Path):
    """Damage elsewhere does not matter: in another block, in another rank's file."""

    def save(group: Any) -> None:
        cells = torch.full((24 << 20,), group.rank, dtype=torch.uint8)
        shard = Shard(cells, (group.rank * cells.numel(),), (2 * cells.numel(),))
        Checkpoints(tmp_path, group=group).save(1, {"u": shard})

    assert on_ranks(2, save) == [None, None]
    checkpoints, folder = Checkpoints(tmp_path), step_folder(tmp_path, 1)
    (folder / "rank-00001.safetensors").unlink()
    flip(folder / SHARD, 20 << 20)
    early = checkpoints.load(1, {"u": slice(1 << 20, 2 << 20)}).tensors["u"]
    assert (early.numel(), early.any().item()) == (1 << 20, False)
    with pytest.raises(DamagedError, match=f"bytes from {16 << 20} on"):
        checkpoints.load(1, {"u": slice(17 << 20, 21 << 20)})
    with pytest.raises(DamagedError, match=r"rank-00001\.safetensors` is missing"):
        checkpoints.load(1, {"u": slice(24 << 20, 25 << 20)})


def test_a_rank_that_sees_damage_makes_all_fall_back(tmp_path: Path, capsys):
    def save(group: Any) -> None:
        for step in (1, 2):
            shard = Shard(torch.full((2,), step), (2 * group.rank,), (4,))
            Checkpoints(tmp_path, group=group).save(step, {"u": shard})

    def load(group: Any, **options: Any) -> Any:
        mine = Shard(torch.zeros(2, dtype=torch.int64), (2 * group.rank,), (4,))
        loaded = Checkpoints(tmp_path, group=group).load(wanted={"u": mine}, **options)
        return loaded.step, mine.tensor.tolist()

    assert on_ranks(2, save) == [None, None]
    flip(step_folder(tmp_path) / "rank-00001.safetensors", -1)
    assert on_ranks(2, load) == [(1, [1, 1])] * 2
    said = capsys.readouterr().err
    assert said.count("step 2 is skipped: rank 1: `") == 1
    for problem in on_ranks(2, lambda group: load(group, step=2)):
        with pytest.raises(DamagedError, match=r"rank-00001\.safetensors` is damaged"):
            raise problem


def test_a_damaged_step_is_moved_out_of_the_way_of_a_new_one(tmp_path: Path, capsys):
    checkpoints = filled(tmp_path)
    flip(step_folder(tmp_path) / SHARD, -1)
    checkpoints.save(2, {"u": torch.zeros(1)})
    assert checkpoints.load().tensors["u"].tolist() == [0]
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names[1:] == ["step-000000001", "step-000000002"]
    assert re.fullmatch(r"damaged-step-000000002-[0-9a-f]{8}", names[0])
    assert f"is not that of the manifest; it is now `{names[0]}`" in capsys.readouterr().err


@given(st.data())
@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])
def test_whatever_byte_changes_the_truth_comes_back_or_an_error(data: st.DataObject):
    with memory_folder() as folder:
        checkpoints = filled(folder)
        truth = checkpoints.load(2)
        path = step_folder(Path(folder)) / data.draw(st.sampled_from([SHARD, MANIFEST]))
        size = path.stat().st_size
        flip(path, data.draw(st.integers(0, size - 1)), data.draw(st.integers(1, 255)))
        try:
            loaded = checkpoints.load(2)
        except StoreError:
            return
        # A space of the manifest may have become another.
        assert path.name == MANIFEST
        assert loaded.extra == truth.extra
        assert loaded.tensors.keys() == truth.tensors.keys()
        assert all(torch.equal(loaded.tensors[n], t) for n, t in truth.tensors.items())


def forge(folder: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """Change a manifest as a liar would: with a good checksum."""
    path = step_folder(folder) / MANIFEST
    body = json.loads(path.read_text())
    del body["checksum"]
    change(body)
    body["checksum"] = _manifest._checksum(body)
    path.write_text(json.dumps(body))


def file_entry(**changes: Any) -> Callable[[dict[str, Any]], Any]:
    return lambda body: body["files"][0].update(changes)


def huge(body: dict[str, Any]) -> None:
    body["tensors"]["u"]["shape"] = body["files"][0]["pieces"]["u"]["shape"] = [2**40, 4]


def wide(body: dict[str, Any]) -> None:
    body["tensors"]["u"]["dtype"] = "I32"


def turned(body: dict[str, Any]) -> None:
    body["tensors"]["u"]["shape"] = body["files"][0]["pieces"]["u"]["shape"] = [4, 3]


LIES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "'../step-000000001/rank-00000.safetensors' is not the name": file_entry(
        name="../step-000000001/rank-00000.safetensors"
    ),
    "'/etc/passwd' is not the name": file_entry(name="/etc/passwd"),
    "'manifest.json' is not the name": file_entry(name="manifest.json"),
    r"'rank-00000.safetensors\\n' is not the name": file_entry(name="rank-00000.safetensors\n"),
    "rank-00001.safetensors` is missing": file_entry(name="rank-00001.safetensors"),
    "has .* bytes, and 9999 were written": file_entry(bytes=9999),
    "-1 is not a size": file_entry(bytes=-1),
    "True is not a size": file_entry(bytes=True),
    "1e3 is not a size|1000.0 is not a size": file_entry(bytes=1e3),
    "not as many as its blocks": file_entry(sums="00" * 8 + " " + "00" * 8),
    "the checksums of": file_entry(sums="g0" * 8),
    "checksum of the": file_entry(sums="00" * 8),
    "cannot hold its pieces": huge,
    "it contains other tensors than the manifest lists": wide,
    "it contains other tensors": turned,
    "lists a file twice": lambda body: body["files"].append(body["files"][0]),
    "the pieces hold 0 of its 5": lambda body: body["files"][0]["pieces"].pop("v"),
    "is outside of it": lambda body: body["tensors"]["u"].update(shape=[2, 4]),
    "a piece of `u` is outside": lambda body: body["tensors"]["u"].update(shape=[12]),
    "the pieces hold 12 of its 16": lambda body: body["tensors"]["u"].update(shape=[4, 4]),
    r"wrong kind \('w'\)": lambda body: body["files"][0]["pieces"].update(
        w={"offset": [], "shape": []}
    ),
    "has the dtype 'F128'": lambda body: body["tensors"]["u"].update(dtype="F128"),
    r"has the dtype \['F32'\]": lambda body: body["tensors"]["u"].update(dtype=["F32"]),
    "a shape is not a list": lambda body: body["tensors"]["u"].update(shape={"0": 3}),
    "a shape is not a list of": lambda body: body["tensors"]["u"].update(shape=[1] * 65),
    "blocks of 1 bytes": lambda body: body.update(block_bytes=1),
    "`extra` is not an object": lambda body: body.update(extra=[1]),
    "its step is not 2": lambda body: body.update(step=3),
    "of the wrong kind": lambda body: body.update(files={"a": 1}),
    "missing or of the wrong": lambda body: body.pop("tensors"),
    "entry is missing": lambda body: body.update(tensors=None),
}


@pytest.mark.parametrize("text", LIES)
def test_a_manifest_that_lies_is_not_believed(tmp_path: Path, text: str):
    checkpoints = filled(tmp_path)
    forge(tmp_path, LIES[text])
    with pytest.raises(DamagedError, match=text):
        checkpoints.load(2)
    assert checkpoints.load(1).step == 1


def test_an_unknown_version_is_no_damage(tmp_path: Path):
    checkpoints = filled(tmp_path)
    forge(tmp_path, lambda body: (body.update(version=2, hotgrid="7.0"), body.pop("files")))
    text = (
        r"is version 2 of the format, written by hotgrid 7\.0; this is .* reads version 1: use"
    )
    for attempt in (checkpoints.load, checkpoints.latest, lambda: checkpoints.load(2)):
        with pytest.raises(StoreError, match=text) as caught:
            attempt()
        assert not isinstance(caught.value, DamagedError)
    with pytest.raises((StoreError, ArgumentError), match="version 2"):
        checkpoints.save(2, {})
