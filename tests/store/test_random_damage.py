"""Checkpoints damaged at random: refused or fallen back from, never wrong, never a hang."""

import os
import random
import shutil
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from hotgrid.errors import DamagedError, StoreError
from hotgrid.store import Checkpoints, Shard

from .ranks import on_ranks

MANIFEST = "manifest.json"
SHARDS = ("rank-00000.safetensors", "rank-00001.safetensors")


def truth(step: int) -> torch.Tensor:
    return torch.arange(4096.0).view(2, -1) + 10_000 * step


def saved(folder: Path) -> None:
    """Steps 1 and 2, cut over two ranks."""

    def save(group: Any) -> None:
        for step in (1, 2):
            piece = Shard(truth(step)[group.rank :][:1], (group.rank, 0), (2, 2048))
            Checkpoints(folder, group=group).save(step, {"u": piece}, extra={"step": step})

    assert on_ranks(2, save) == [None, None]


def bytes_changed(chance: random.Random, path: Path, _: Path) -> None:
    data = bytearray(path.read_bytes())
    for _change in range(chance.choice((1, 2, 30))):
        data[chance.randrange(len(data))] ^= chance.randrange(1, 256)
    path.write_bytes(data)


def stretch_lost(chance: random.Random, path: Path, _: Path) -> None:
    """Zeros where data was, as after a crash of a file system."""
    data = bytearray(path.read_bytes())
    start = chance.randrange(len(data))
    data[start : start + 512] = bytes(len(data[start : start + 512]))
    path.write_bytes(data)


def cut_short(chance: random.Random, path: Path, _: Path) -> None:
    os.truncate(path, chance.randrange(path.stat().st_size))


def grown(chance: random.Random, path: Path, _: Path) -> None:
    os.truncate(path, path.stat().st_size + chance.choice((1, 4096, 1 << 40)))


def removed(chance: random.Random, path: Path, _: Path) -> None:
    path.unlink()


def linked(chance: random.Random, path: Path, outside: Path) -> None:
    """A link to a good copy: what it leads to may change at any time."""
    path.rename(outside)
    target = chance.choice((outside, Path("/dev/zero"), Path("/dev/stdin"), path))
    path.symlink_to(target)


def a_pipe(chance: random.Random, path: Path, outside: Path) -> None:
    path.rename(outside)
    os.mkfifo(path)
    if chance.random() < 0.3:
        pipe = path.rename(outside.with_suffix(".pipe"))
        path.symlink_to(pipe)


def a_socket_or_folder(chance: random.Random, path: Path, outside: Path) -> None:
    path.rename(outside)
    if chance.random() < 0.5:
        path.mkdir()
        return
    here = Path.cwd()
    os.chdir(path.parent)  # the name of a socket may not be long
    try:
        with socket.socket(socket.AF_UNIX) as opened:
            opened.bind(path.name)
    finally:
        os.chdir(here)


def swapped(chance: random.Random, path: Path, outside: Path) -> None:
    """The file of another rank, or of another step."""
    step = path.parent
    others = [step / name for name in SHARDS if name != path.name]
    others.append(step.with_name("step-000000001") / path.name)
    other = others[-1] if path.name == MANIFEST else chance.choice(others)
    path.rename(outside)
    shutil.copy(other, path)
    if other.parent == step:
        shutil.copy(outside, other)


def linked_folder(chance: random.Random, path: Path, outside: Path) -> None:
    step = path.parent
    if chance.random() < 0.3:
        shutil.rmtree(step)
        chance.choice((os.mkfifo, Path.touch))(step)
        return
    step.rename(outside)
    step.symlink_to(outside if chance.random() < 0.8 else "nowhere")


DAMAGES: tuple[Callable[[random.Random, Path, Path], None], ...] = (
    bytes_changed, bytes_changed, stretch_lost, cut_short, grown, removed, linked, a_pipe,
    a_socket_or_folder, swapped, linked_folder,
)  # fmt: skip


def expect_told_or_true(good: Path, folder: Path, chance: random.Random) -> None:
    shutil.copytree(good, folder / "run")
    step = folder / "run" / "step-000000002"
    path = step / chance.choice((MANIFEST, *SHARDS))
    damage = DAMAGES[chance.randrange(len(DAMAGES))]
    damage(chance, path, folder / "outside")
    checkpoints = Checkpoints(folder / "run")
    told = f"{damage.__name__} of {path.name}"
    try:
        assert torch.equal(checkpoints.load(2).tensors["u"], truth(2)), told
        refused = False
    except StoreError as problem:
        assert isinstance(problem, DamagedError) == (2 in checkpoints.steps()), told
        refused = True
    # Only a blank of the manifest may become another.
    assert refused or (damage in (bytes_changed,) and path.name == MANIFEST), told
    loaded = checkpoints.load()
    assert loaded.step == loaded.extra["step"] == (1 if refused else 2), told
    assert torch.equal(loaded.tensors["u"], truth(loaded.step)), told
    assert checkpoints.latest() in (1, 2), told
    if refused:
        # The run comes to step 2 again; what is damaged is put aside and kept.
        checkpoints.save(2, {"u": truth(2)})
        assert torch.equal(checkpoints.load().tensors["u"], truth(2)), told
        assert os.path.lexists(step), told


def damage_many(tmp_path: Path, seed: int, count: int) -> None:
    chance = random.Random(seed)
    saved(tmp_path / "good")
    for number in range(count):
        folder = tmp_path / str(number)
        folder.mkdir()
        expect_told_or_true(tmp_path / "good", folder, chance)
        shutil.rmtree(folder)


def test_damage_of_sixty_kinds(tmp_path: Path):
    damage_many(tmp_path, 1, 60)


@pytest.mark.long
def test_damage_of_three_hundred_kinds(tmp_path: Path):
    damage_many(tmp_path, 2, 300)
