"""Saving and loading in one process: round trips, keeping, and what is refused."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from hotgrid.errors import ArgumentError, DamagedError, StoreError
from hotgrid.store import Checkpoints, Shard
from hotgrid.store._shard._dtypes import _TORCH_NAMES

from .ranks import same_bits

DTYPES = [getattr(torch, name) for name in _TORCH_NAMES.values()]


def everything() -> dict[str, torch.Tensor]:
    bits = torch.randint(0, 256, (6 * 8 * 4,), dtype=torch.uint8)
    tensors = {str(dtype): bits.view(dtype).clone() for dtype in DTYPES if dtype != torch.bool}
    return {
        **tensors,
        "bool": bits > 100,
        "scalar": torch.tensor(3.5),
        "empty": torch.zeros(4, 0, 2),
        "turned": torch.arange(12).view(3, 4).T,
        "strided": torch.arange(100.0)[::7],
        "parameter": torch.nn.Parameter(torch.ones(3)),
        "ein Name/mit ß und \n": torch.ones(1),
    }


def step_files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_every_kind_of_tensor_comes_back_to_the_bit(tmp_path: Path):
    saved = everything()
    checkpoints = Checkpoints(tmp_path / "deep" / "run")
    path = checkpoints.save(12, saved)
    assert path == tmp_path / "deep" / "run" / "step-000000012"
    loaded = checkpoints.load()
    assert loaded.step == 12
    assert loaded.tensors.keys() == saved.keys()
    for name, tensor in saved.items():
        assert same_bits(loaded.tensors[name], tensor.detach()), name
        assert not loaded.tensors[name].requires_grad


def test_other_programs_can_open_the_files(tmp_path: Path):
    saved = everything()
    path = Checkpoints(tmp_path).save(0, saved)
    assert step_files(path) == ["manifest.json", "rank-00000.safetensors"]
    found = load_file(path / "rank-00000.safetensors")
    assert found.keys() == {name for name, tensor in saved.items() if tensor.numel()}
    assert all(same_bits(found[name], saved[name].detach()) for name in found)
    assert json.loads((path / "manifest.json").read_text())["format"] == "hotgrid checkpoint"


def test_extra_comes_back(tmp_path: Path):
    extra: dict[str, Any] = {"t": 0.1, "n": 2**70, "deep": {"list": [1, None, True, "ß"]}}
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(1, {}, extra={**extra, "pair": (1, 2), "nan": float("nan")})
    loaded = checkpoints.load(wanted=[])
    assert loaded.tensors == {}
    assert math.isnan(loaded.extra.pop("nan"))
    assert loaded.extra == {**extra, "pair": [1, 2]}


def test_tensors_are_filled_in_place(tmp_path: Path):
    checkpoints = Checkpoints(tmp_path)
    u = torch.arange(24.0).view(4, 6)
    checkpoints.save(1, {"u": u, "v": torch.ones(2, dtype=torch.int8), "w": torch.ones(9)})
    grid = torch.zeros(6, 8)
    part = torch.nn.Parameter(torch.zeros(2, 3))
    v = torch.zeros(2, dtype=torch.int8)
    loaded = checkpoints.load(wanted={"u": Shard(part, (1, 2), (4, 6)), "v": v})
    assert loaded.tensors["u"] is part
    assert loaded.tensors["v"] is v
    assert torch.equal(part.detach(), u[1:3, 2:5])
    assert v.tolist() == [1, 1]
    # A view into a padded buffer is filled, its margin is left alone.
    checkpoints.load(wanted={"u": grid[1:5, 1:7]})
    assert torch.equal(grid[1:5, 1:7], u)
    assert grid.sum() == u.sum()


@pytest.mark.parametrize(
    ("part", "index"),
    [
        ("1:3, 2:", np.s_[1:3, 2:]),
        ("...", np.s_[...]),
        (":0", np.s_[:0]),
        ("-2:, :-1", np.s_[-2:, :-1]),
        (np.s_[1:2,], np.s_[1:2]),
        (np.s_[:2], np.s_[:2]),
        (None, np.s_[:]),
    ],
)
def test_a_part_is_what_slicing_gives(tmp_path: Path, part: Any, index: Any):
    u = torch.arange(24).view(4, 6)
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(1, {"u": u})
    found = checkpoints.load(wanted={"u": part}).tensors["u"]
    assert torch.equal(found, u[index])


def test_names_choose_tensors_even_from_an_iterator(tmp_path: Path):
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(1, {"u": torch.ones(1), "v": torch.ones(2)})
    assert list(checkpoints.load(wanted=iter(["v"])).tensors) == ["v"]


WRONG_WANTS = {
    "did you mean `velocity`": {"velocty": None},
    "it has velocity, u": ["zzz"],
    r"write \['u'\]": "u",
    r"saved with the shape \(4, 6\), and requested with \(4, 5\)": {"u": torch.zeros(4, 5)},
    "saved as torch.float32, and the tensor to fill is torch.float64": {
        "u": torch.zeros(4, 6, dtype=torch.float64)
    },
    "only slices like 3:4": {"u": "2, :"},
    "`::2` of `u`": {"u": "::2"},
    "names 3 dims": {"u": "1:, 1:, 1:"},
    "its elements share memory": {"u": torch.zeros(1).expand(4, 6)},
}


@pytest.mark.parametrize("text", WRONG_WANTS)
def test_misfits_are_refused(tmp_path: Path, text: str):
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(1, {"velocity": torch.zeros(2), "u": torch.zeros(4, 6)})
    with pytest.raises(ArgumentError, match=text):
        checkpoints.load(wanted=WRONG_WANTS[text])


def test_nothing_is_filled_where_one_tensor_cannot_be(tmp_path: Path):
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(1, {"a": torch.ones(3), "b": torch.ones(3)})
    a = torch.zeros(3)
    with torch.inference_mode():
        b = torch.zeros(3)
    with pytest.raises(ArgumentError, match=r"`b` cannot be loaded .* inference mode"):
        checkpoints.load(wanted={"a": a, "b": b})
    assert a.sum() == 0


def test_the_default_device_is_not_asked(tmp_path: Path):
    checkpoints = Checkpoints(tmp_path)
    with torch.device("meta"):
        checkpoints.save(1, {"u": torch.ones(3, device="cpu")})
        loaded = checkpoints.load().tensors["u"]
    assert loaded.device.type == "cpu"
    assert loaded.tolist() == [1, 1, 1]


def test_what_is_not_there_is_reported(tmp_path: Path):
    checkpoints = Checkpoints(tmp_path / "none")
    assert checkpoints.steps() == []
    assert checkpoints.latest() is None
    with pytest.raises(StoreError, match=r"there is no checkpoint in `.*none`$"):
        checkpoints.load()
    checkpoints.save(1, {})
    checkpoints.save(20, {})
    with pytest.raises(StoreError, match=r"there is no step 2 in `.*none`; there are 1, 20$"):
        checkpoints.load(2)


def test_a_checkpoint_is_never_written_over(tmp_path: Path):
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(7, {"u": torch.ones(3)})
    with pytest.raises(
        ArgumentError, match=r"step 7 is saved in .* already.*never overwritten"
    ):
        checkpoints.save(7, {"u": torch.zeros(3)})
    assert step_files(tmp_path) == ["step-000000007"]
    assert checkpoints.load().tensors["u"].sum() == 3


HOLDS_ITSELF: dict[str, Any] = {}
HOLDS_ITSELF["again"] = HOLDS_ITSELF

REFUSED = {
    "`step` is -1": {"step": -1},
    "`step` is True": {"step": True},
    "`step` is 1.5": {"step": 1.5},
    "cannot be named 3": {"tensors": {3: torch.ones(1)}},
    r"cannot be named '\\ud800'": {"tensors": {"\ud800": torch.ones(1)}},
    "`extra` contains itself": {"extra": HOLDS_ITSELF},
    "cannot be named '__metadata__'": {"tensors": {"__metadata__": torch.ones(1)}},
    r"`lr` is a float; .* belong in `extra`": {"tensors": {"lr": 0.1}},
    "`tensors` is a list": {"tensors": [torch.ones(1)]},
    "complex64, which safetensors does not support: use `torch.view_as_real`": {
        "tensors": {"z": torch.zeros(2, dtype=torch.complex64)}
    },
    "torch.sparse_coo on cpu: make it dense": {"tensors": {"s": torch.eye(3).to_sparse()}},
    "on meta: make it dense": {"tensors": {"m": torch.empty(3, device="meta")}},
    r"`extra\['a'\]\[1\]` is a Tensor": {"extra": {"a": [1, torch.ones(1)]}},
    "`extra` has the key 3": {"extra": {3: 4}},
    "`extra` is a list; expected a dict": {"extra": [1]},
    r"`extra\['s'\]` is a set": {"extra": {"s": {1}}},
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_cannot_be_saved_is_refused(tmp_path: Path, text: str):
    arguments = {"step": 1, "tensors": {"u": torch.ones(2)}, **REFUSED[text]}
    step, tensors = arguments.pop("step"), arguments.pop("tensors")
    with pytest.raises(ArgumentError, match=text):
        Checkpoints(tmp_path).save(step, tensors, **arguments)
    assert step_files(tmp_path) == []


def test_a_piece_must_lie_within_the_whole():
    for offset, shape in (((0, 3), (4, 4)), ((-1, 0), (4, 4)), ((0,), (4, 4)), ((0, 0), (4,))):
        with pytest.raises(ArgumentError, match=r"shape \(2, 2\) at `offset`.*is not within"):
            Shard(torch.zeros(2, 2), offset, shape)
    with pytest.raises(ArgumentError, match="`tensor` of a Shard is a list"):
        Shard([1, 2], (0,), (2,))


@pytest.mark.parametrize(
    ("rules", "left"),
    [
        ({"keep_last": 1}, [60]),
        ({"keep_last": 2}, [50, 60]),
        ({"keep_last": None}, [10, 20, 30, 40, 50, 60]),
        ({"keep_last": 1, "keep_every": 20}, [20, 40, 60]),
        ({"keep_last": 1, "keep_best": "loss"}, [30, 60]),
        ({"keep_last": 2, "keep_best": "loss", "best": "highest"}, [20, 50, 60]),
        ({"keep_last": 1, "keep_every": 40, "keep_best": "loss"}, [30, 40, 60]),
    ],
)
def test_what_the_rules_protect_stays(tmp_path: Path, rules: dict[str, Any], left: list[int]):
    checkpoints = Checkpoints(tmp_path, **rules)
    losses = {10: 5.0, 20: 9, 30: 1.5, 40: 2.0, 50: float("nan"), 60: 1.5001}
    for step, loss in losses.items():
        checkpoints.save(step, {"u": torch.ones(1)}, extra={"loss": loss})
    assert checkpoints.steps() == left
    checkpoints.wait()
    assert step_files(tmp_path) == [f"step-{step:09d}" for step in left]


def test_rules_that_make_no_sense_are_refused(tmp_path: Path):
    for rules, text in [
        ({"keep_last": 0}, "`keep_last` is 0"),
        ({"keep_every": 2.5}, "`keep_every` is 2.5"),
        ({"best": "max"}, "`best` is 'max'; expected lowest or highest"),
    ]:
        with pytest.raises(ArgumentError, match=text):
            Checkpoints(tmp_path, **rules)
    for extra in ({}, {"loss": "low"}, {"loss": True}):
        with pytest.raises(ArgumentError, match=r"`keep_best` is 'loss', and `extra` has"):
            Checkpoints(tmp_path, keep_best="loss").save(1, {}, extra=extra)


def test_a_step_beside_later_ones_stays_and_that_is_reported(tmp_path: Path, capsys):
    checkpoints = Checkpoints(tmp_path, keep_last=2)
    for step in (10, 20, 30):
        checkpoints.save(step, {})
    checkpoints.save(15, {})
    assert checkpoints.steps() == [15, 20, 30]
    said = "step 15 was saved beside later ones (20, 30), which `load` takes first"
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("early", [False, True])
def test_large_tensors_are_filled_while_they_are_checked(tmp_path: Path, early: bool):
    """Blocks of 8 MiB: some lie within a tensor, some hold the ends of two."""
    saved = {
        "a": torch.randint(0, 2**31, (5 << 20,), dtype=torch.int32),
        "b": torch.rand(3, 1 << 20),
        "c": torch.rand(7),
    }
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(1, saved)
    given = {"a": torch.zeros(5 << 20, dtype=torch.int32), "b": torch.zeros(6, 1 << 20)[::2]}
    for wanted in (None, {**given, "c": torch.zeros(7)}):
        loaded = checkpoints.load(wanted=wanted, early=early).tensors
        assert all(torch.equal(loaded[name], x) for name, x in saved.items())
    # A block at the end is damaged: what was given is untouched, unless it may be.
    file = tmp_path / "step-000000001" / "rank-00000.safetensors"
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    given["a"].zero_()
    with pytest.raises(DamagedError):
        checkpoints.load(wanted={**given, "c": torch.zeros(7)}, early=early)
    assert given["a"].any().item() == early
