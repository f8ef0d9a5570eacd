"""Model folders: what is written is what is read; small ones; exports."""

import json
import os
from unittest.mock import Mock

import pytest
import torch
from onnx.reference import ReferenceEvaluator

from hotgrid.errors import ArgumentError, DamagedError, MissingPartError, StoreError
from hotgrid.vision import (
    ImageModel,
    NormalisePixels,
    create_model,
    export_model,
    load_image_model,
    save_image_model,
)


@pytest.fixture(scope="module")
def made() -> ImageModel:
    torch.manual_seed(0)
    net = create_model("fast_resnet", num_classes=4, image_size=16, dims=(8, 16, 16)).eval()
    mean = NormalisePixels((0.4, 0.5, 0.6), (0.2, 0.2, 0.3))
    return ImageModel(net, ("ant", "bee", "cat", "dog"), mean, 16, {"name": "pets"})


@pytest.fixture(scope="module")
def images() -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randint(0, 256, (5, 3, 16, 16), generator=generator, dtype=torch.uint8)


def test_a_folder_holds_the_model(made, images, tmp_path):
    save_image_model(tmp_path / "model", made)
    found = load_image_model(tmp_path / "model")
    assert (found.name, found.classes, found.size) == ("pets", made.classes, 16)
    assert found.normalise == made.normalise
    assert torch.equal(found.scores(images), made.scores(images))
    # It is replaced as a whole, and nothing else is.
    save_image_model(tmp_path / "model", made)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "letter.txt").write_text("mine")
    with pytest.raises(ArgumentError, match="another folder"):
        save_image_model(tmp_path / "other", made)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "other"]


def test_a_fault_while_a_model_is_replaced_leaves_the_old_one(made, images, tmp_path):
    folder = tmp_path / "model"
    save_image_model(folder, made)
    expected = made.scores(images)
    for name in ("fsync", "rename"):
        with pytest.MonkeyPatch.context() as patch, pytest.raises(StoreError):
            patch.setattr(os, name, Mock(side_effect=OSError(5, "Input/output error")))
            save_image_model(folder, made, int8=True)
        assert torch.equal(load_image_model(folder).scores(images), expected)
    # Killed between the renames: the reader restores it.
    folder.rename(tmp_path / f".model-{'0' * 32}-old")
    assert torch.equal(load_image_model(folder).scores(images), expected)
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_eight_bits_are_a_quarter_and_nearly_the_same(made, images, tmp_path):
    save_image_model(tmp_path / "full", made)
    save_image_model(tmp_path / "small", made, int8=True)
    sizes = [
        (tmp_path / name / "model.safetensors").stat().st_size for name in ("small", "full")
    ]
    assert sizes[0] < 0.45 * sizes[1]  # vectors and scales weigh more in a tiny model
    found = load_image_model(tmp_path / "small")
    for name, each in made.model.state_dict().items():
        near = found.model.state_dict()[name]
        limit = each.abs().flatten(1).amax(1) / 127 if each.ndim > 1 else 0
        apart = (near - each).abs()
        bound = limit.view(-1, *[1] * (each.ndim - 1)) if each.ndim > 1 else limit
        assert (apart <= 0.5 * bound + 1e-7).all(), name
    wanted = made.scores(images)
    assert (found.scores(images) - wanted).abs().max() < 0.05 * wanted.std() + 1e-3


def test_flipping_averages_both_views(made, images):
    both = made.scores(images, flip=True)
    wanted = 0.5 * (made.scores(images) + made.scores(images.flip(3)))
    torch.testing.assert_close(both, wanted)


def test_damage_is_found(made, tmp_path):
    save_image_model(tmp_path / "model", made)
    weights = tmp_path / "model" / "model.safetensors"
    data = bytearray(weights.read_bytes())
    data[-3] ^= 1
    weights.write_bytes(data)
    with pytest.raises(DamagedError, match="does not match its checksum"):
        load_image_model(tmp_path / "model")
    weights.unlink()
    with pytest.raises(DamagedError, match="neither"):
        load_image_model(tmp_path / "model")
    about = tmp_path / "model" / "model.json"
    given = json.loads(about.read_text())
    about.write_text(json.dumps({**given, "format": 9}))
    with pytest.raises(ArgumentError, match="format 9"):
        load_image_model(tmp_path / "model")
    about.write_text("{}")
    with pytest.raises(DamagedError, match="does not describe"):
        load_image_model(tmp_path / "model")
    with pytest.raises(ArgumentError, match="hotgrid vision train"):
        load_image_model(tmp_path)


def test_an_exported_program_computes_the_same(made, images, tmp_path):
    found = export_model(made, tmp_path / "model.pt2", "torch-export")
    assert found.apart <= 1e-4
    program = torch.export.load(found.file).module()
    torch.testing.assert_close(program(images), made.scores(images), rtol=0, atol=1e-4)
    torch.testing.assert_close(program(images[:1]), made.scores(images[:1]), rtol=0, atol=1e-4)


@pytest.mark.long
# onnxscript and the exporter use what Python and torch call deprecated.
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_onnx_computes_the_same(made, images, tmp_path):
    found = export_model(made, tmp_path / "model.onnx", "onnx")
    assert found.apart <= 1e-4
    session = ReferenceEvaluator(str(found.file))
    for batch in (images, images[:1]):
        (scores,) = session.run(None, {"images": batch.numpy()})
        torch.testing.assert_close(
            torch.from_numpy(scores), made.scores(batch), rtol=0, atol=1e-4
        )


def test_onnx_says_what_it_needs(made, tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingPartError, match=r"onnx and onnxscript.*hotgrid\[onnx\]"):
        export_model(made, tmp_path / "model.onnx", "onnx")
    assert not any(tmp_path.iterdir())
    with pytest.raises(ArgumentError, match="torch-export"):
        export_model(made, tmp_path / "model.tf", "tf")
