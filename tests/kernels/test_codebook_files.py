"""Files of compressed models: for the right module, whole, and not changed since."""

import itertools
import json
from collections.abc import Callable
from pathlib import Path

import pytest
import safetensors.torch
import torch
from torch import nn

from hotgrid.errors import ArgumentError, DamagedError, StoreError
from hotgrid.kernels import CodebookLinear, compress, load_compressed, save_compressed
from hotgrid.kernels._codebook._coded import Coded

from .codebook_cases import coded_matrices
from .gemv_cases import normal


def model(*sizes: int, bias: bool = True) -> nn.Sequential:
    return nn.Sequential(*[nn.Linear(*each, bias=bias) for each in itertools.pairwise(sizes)])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Of a file of 8 -> 16 -> 4."""
    path = tmp_path / "small.safetensors"
    save_compressed(compress(model(8, 16, 4), form="int8"), path)
    return path


@pytest.mark.parametrize(
    ("other", "text"),
    [
        (
            lambda: model(32, 64, 2),
            "has a linear layer 8 -> 16 with a bias as layer `0`, the given Sequential a "
            "linear layer 32 -> 64 with a bias",
        ),
        (lambda: model(8, 16, 2), "layer `1`, the given Sequential a linear layer 16 -> 2 "),
        (
            lambda: model(8, 16, 4, bias=False),
            "layer `0`, the given Sequential a linear layer 8 -> 16 without a bias",
        ),
        (
            lambda: nn.Sequential(nn.Linear(8, 16), nn.Sequential()),
            "has a linear layer 16 -> 4 with a bias as layer `1`, the given Sequential a Seq",
        ),
        (lambda: model(8, 16), "has a layer `1`, which the given Sequential does not have"),
        (lambda: model(8, 16, 4, 3), "has no `2.bias`, `2.weight`"),
        (lambda: "model", "`module` must be a torch module, got str"),
    ],
)
def test_a_file_is_for_layers_of_its_shapes(
    path: Path, other: Callable[[], nn.Module], text: str
):
    with pytest.raises(ArgumentError, match=text):
        load_compressed(other(), path)
    assert isinstance(load_compressed(model(8, 16, 4), path).get_submodule("1"), CodebookLinear)


def test_a_compressed_model_can_be_loaded_into(path: Path):
    there = compress(model(8, 16, 4), form="int4", force=True)
    assert load_compressed(there, path).get_submodule("0").form == "int8"


def test_what_the_module_has_not_is_not_lost_silently(path: Path):
    whole = nn.Sequential(*load_compressed(model(8, 16, 4), path).children(), nn.LayerNorm(4))
    save_compressed(whole, path)
    with pytest.raises(ArgumentError, match=r"has `2.bias`, `2.weight`, which the given"):
        load_compressed(model(8, 16, 4), path)


def test_a_changed_byte_is_noticed(path: Path):
    """Every one of the file: it is refused, or is of no account."""
    written, x = path.read_bytes(), normal(3, 8)
    layers = lambda: nn.Sequential(nn.Linear(8, 16), nn.Linear(16, 4))
    exact, noticed = load_compressed(layers(), path)(x), 0
    for at in range(0, len(written), 3):
        path.write_bytes(written[:at] + bytes([written[at] ^ 1]) + written[at + 1 :])
        try:
            assert torch.equal(load_compressed(layers(), path)(x), exact), at
        except (DamagedError, ArgumentError):
            noticed += 1
    # What is left is padding, and the word that says that there are checksums.
    assert noticed > 0.9 * len(range(0, len(written), 3))


def test_a_changed_tensor_is_named(path: Path):
    written = bytearray(path.read_bytes())
    written[-5] ^= 64
    path.write_bytes(written)
    with pytest.raises(DamagedError, match=r"is damaged: the checksum of tensor \d\.\w+ does"):
        load_compressed(model(8, 16, 4), path)


def test_files_without_checksums_are_read(path: Path):
    with safetensors.safe_open(path, "pt") as opened:
        metadata = opened.metadata()
    assert metadata.keys() == {"hotgrid.codebook", "hotgrid.checksums"}
    tensors, exact = safetensors.torch.load_file(path), load_compressed(model(8, 16, 4), path)
    metadata.pop("hotgrid.checksums")
    safetensors.torch.save_file(tensors, path, metadata=metadata)
    again = load_compressed(model(8, 16, 4), path)
    assert torch.equal(again(normal(2, 8)), exact(normal(2, 8)))


@pytest.mark.parametrize("key", ["hotgrid.codebook", "hotgrid.checksums"])
def test_brackets_without_end_are_damage(path: Path, key: str):
    with safetensors.safe_open(path, "pt") as opened:
        metadata = opened.metadata() | {key: "[" * 100_000}
    safetensors.torch.save_file(safetensors.torch.load_file(path), path, metadata=metadata)
    with pytest.raises(DamagedError, match="cannot be read"):
        load_compressed(model(8, 16, 4), path)


@pytest.mark.parametrize(
    ("part", "other", "text"),
    [
        ("codes", torch.full((64,), 40, dtype=torch.uint8), "`codes` name row 40 of 40"),
        ("codes", torch.zeros(64, dtype=torch.int8), "`codes` is torch.int8, which"),
        ("table", torch.zeros(40, 63, dtype=torch.int8), r"`table` is of shape \(40, 63\)"),
        ("scale", torch.zeros(()), "is a single number"),
    ],
)
def test_kernels_are_not_given_tensors_that_do_not_fit(
    tmp_path: Path, part: str, other: torch.Tensor, text: str
):
    """They would read beyond them."""
    layer, path = nn.Linear(64, 64, bias=False), tmp_path / "rows.safetensors"
    layer.weight.data = normal(40, 64).repeat(2, 1)[:64]
    save_compressed(compress(layer, form="rows"), path)
    tensors = {**safetensors.torch.load_file(path), part: other}
    about = {"": {"form": "rows", "in_features": 64}}
    safetensors.torch.save_file(tensors, path, {"hotgrid.codebook": json.dumps(about)})
    with pytest.raises(DamagedError, match=text):
        load_compressed(layer, path)


def test_every_form_is_without_fault_and_another_shape_is_not():
    for coded in coded_matrices(33, 72):
        assert coded.fault() is None
        parts = (coded.codes, coded.scale, coded.table, coded.signs)
        assert Coded(coded.form, 328, *parts).fault() is not None
        for name in ("codes", "scale", "table", "signs"):
            part = getattr(coded, name)
            if part is not None and (coded.form, name) != ("rows", "codes"):
                spoilt = {"codes": coded.codes, "scale": coded.scale, "table": coded.table}
                spoilt |= {"signs": coded.signs, name: torch.cat([part, part])}
                assert Coded(coded.form, 72, **spoilt).fault() is not None, (coded.form, name)


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path):
    small = compress(nn.Linear(8, 8), form="int8")
    (tmp_path / "file").touch()
    for path in (tmp_path, tmp_path / "file" / "below.safetensors"):
        with pytest.raises(ArgumentError, match=f"cannot write `{path}`: "):
            save_compressed(small, path)
    assert list(tmp_path.iterdir()) == [tmp_path / "file"]


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path):
    for path in (tmp_path, tmp_path / "none.safetensors"):
        with pytest.raises(StoreError, match=f"`{path}`"):
            load_compressed(nn.Linear(8, 8), path)


def test_a_failed_write_leaves_the_old_file(path: Path, monkeypatch: pytest.MonkeyPatch):
    old = path.read_bytes()

    def half(tensors: dict, aside: Path, metadata: dict) -> None:
        Path(aside).write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(safetensors.torch, "save_file", half)
    with pytest.raises(StoreError, match=f"cannot write `{path}`: No space left on device"):
        save_compressed(compress(nn.Linear(8, 8), form="int8"), path)
    assert path.read_bytes() == old
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_only_modules_are_saved(tmp_path: Path):
    with pytest.raises(ArgumentError, match="`module` must be a torch module, got int"):
        save_compressed(3, tmp_path / "x")  # pyright: ignore[reportArgumentType]
