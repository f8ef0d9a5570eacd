"""Training: what is learned, what is written, and that a resumed run is the same run."""

import gzip
import json
import os
import signal
from pathlib import Path

import pytest
import torch
from PIL import Image
from safetensors.torch import load_file
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from hotgrid.errors import ArgumentError, DamagedError
from hotgrid.train import read_run
from hotgrid.vision import (
    ColumnBatches,
    TrainedImages,
    VisionRecipe,
    VisionRun,
    find_recipe,
    load_image_model,
    open_images,
    predict_images,
    sample_keys,
    score_images,
    train_images,
)

from .shapes import KINDS, write_shapes

TINY = {"dims": (8, 16, 16)}
RECIPE = find_recipe("fast-resnet").changed(
    epochs=10.0, batch=32, rate=0.3, rate_batch=0, warmup=1.0, norm_rate=4.0, average=0.9
)


@pytest.fixture(scope="module")
def shapes(tmp_path_factory) -> Path:
    return write_shapes(tmp_path_factory.mktemp("shapes"), 60, 16)


def trained(data: Path, out: Path, recipe: VisionRecipe = RECIPE, **run) -> TrainedImages:
    settings = VisionRun(out, device="cpu", show=False, **run)
    return train_images(open_images(data), "fast_resnet", recipe, settings, shape=TINY)


@pytest.fixture(scope="module")
def made(shapes, tmp_path_factory) -> TrainedImages:
    return trained(shapes, tmp_path_factory.mktemp("runs") / "run")


def test_shapes_are_learned(made):
    assert made.why == "finished"
    assert made.score.count == 45
    assert made.score.accuracy > 0.9
    assert int(made.score.confusion.diag().sum()) == round(made.score.accuracy * 45)
    assert made.score.confusion.sum(1).tolist() == [15, 15, 15]


def test_the_folder_has_a_model_a_report_and_pictures(made, shapes):
    run = made.model.path.parent
    for name in ("confusion.png", "worst.png"):
        assert (run / name).read_bytes().startswith(b"\x89PNG")
    report = (run / "report.html").read_text()
    assert report.count("data:image/png;base64,") == 2
    assert "confusion matrix" in report
    curves = read_run(run).curves
    assert curves["valid/accuracy"][-1][1] > 0.8
    # The checkpoint, the model folder and what was returned are one model.
    images = torch.randint(0, 256, (4, 3, 16, 16), dtype=torch.uint8)
    wanted = made.model.scores(images)
    for place in (run, made.model.path):
        found = load_image_model(place)
        assert found.classes == KINDS
        assert torch.equal(found.scores(images), wanted)
    names = {path.suffix for path in made.model.path.iterdir()}
    assert names == {".json", ".safetensors"}
    card = json.loads((made.model.path / "model.json").read_text())["card"]
    assert card["figures"]["accuracy"] == made.score.accuracy
    assert VisionRecipe.from_plain(card["recipe"]) == RECIPE


def test_the_worst_samples_are_those_with_the_highest_losses(made, shapes):
    data = open_images(shapes)
    from hotgrid.vision._training import image_column

    images, labels = image_column(data.plan("valid", 16, 16))
    score = score_images(made.model, ColumnBatches(images, labels, 7, training=False))
    scores = made.model.scores(images)
    losses = torch.nn.functional.cross_entropy(scores, labels, reduction="none")
    order = losses.argsort(descending=True)[: len(score.worst)]
    assert [each.index for each in score.worst] == order.tolist()
    assert torch.equal(score.worst_images, images[order])
    assert score.loss == pytest.approx(float(losses.mean()), rel=1e-5)


def test_files_are_predicted(made, shapes):
    files = sorted((shapes / "test").rglob("*.png"))
    found = predict_images(made.model, files, top=2)
    right = sum(Path(each.file).parent.name == each.classes[0][0] for each in found)
    assert right > 0.9 * len(files)
    assert all(len(each.classes) == 2 and each.classes[0][1] >= 0.5 for each in found)


def weights(run: Path) -> dict[str, torch.Tensor]:
    return load_file(run / "model" / "model.safetensors")


def test_a_run_stopped_in_mid_epoch_resumes_to_the_bit(shapes, tmp_path, monkeypatch):
    recipe = RECIPE.changed(
        epochs=2.0,
        augment=find_recipe("small-swin").augment,
        after=find_recipe("small-swin").after,
    )
    whole = trained(shapes, tmp_path / "whole", recipe)
    original = ColumnBatches.batch

    def interrupted(self, index, rank=0, ranks=1):
        if self.endless and index == 7:  # an epoch has 5.6 steps
            os.kill(os.getpid(), signal.SIGTERM)
        return original(self, index, rank, ranks)

    monkeypatch.setattr(ColumnBatches, "batch", interrupted)
    first = trained(shapes, tmp_path / "parts", recipe)
    assert first.why == "stopped" and first.score is None
    monkeypatch.undo()
    second = trained(shapes, tmp_path / "parts", recipe, resume=True)
    assert second.why == "finished"
    ours, theirs = weights(tmp_path / "parts"), weights(tmp_path / "whole")
    assert ours.keys() == theirs.keys()
    for name, each in theirs.items():
        assert torch.equal(ours[name], each), name
    assert second.score.figures() == whole.score.figures()


def test_a_run_resumes_only_with_its_own_recipe(made, shapes):
    with pytest.raises(ArgumentError, match="recipe"):
        trained(shapes, made.model.path.parent, RECIPE.changed(rate=0.2), resume=True)


def test_large_images_are_decoded_while_training(tmp_path):
    data = write_shapes(tmp_path / "large", 8, 80)
    recipe = find_recipe("fine-tune").changed(epochs=2.0, batch=8, warmup=0.0)
    settings = VisionRun(tmp_path / "run", device="cpu", show=False, workers=2)
    images = open_images(data)
    assert not images.small
    found = train_images(
        images, "fast_resnet", recipe, settings, size=32, shape={"dims": (8, 8, 8)}
    )
    assert found.score.count == 6
    assert found.model.size == 32


def test_repeated_augmentation_needs_images_in_memory(tmp_path):
    data = open_images(write_shapes(tmp_path / "large", 4, 80))
    with pytest.raises(ArgumentError, match="repeats=1"):
        train_images(data, "fast_resnet", find_recipe("deit"), VisionRun(tmp_path / "run"))


def test_ranks_share_a_batch_and_keep_its_keys():
    images = torch.arange(10, dtype=torch.uint8).view(10, 1, 1, 1)
    column = ColumnBatches(images, torch.arange(10), 4, seed=3)
    seen: list[int] = []
    for index in range(5):
        whole = column.batch(index)
        parts = [column.batch(index, rank, 2) for rank in range(2)]
        for at in range(3):
            joined = torch.stack([part[at] for part in parts], 1).flatten(0, 1)
            assert torch.equal(joined, whole[at])
        epoch = (torch.arange(4) + index * 4) // 10
        assert torch.equal(whole.keys, sample_keys(3, epoch, whole.labels))
        assert torch.equal(whole.images.flatten(), whole.labels.to(torch.uint8))
        seen += whole.labels.tolist()
    assert sorted(seen[:10]) == sorted(seen[10:]) == list(range(10))
    assert seen[:10] != seen[10:]
    with pytest.raises(ArgumentError, match="multiple of 3"):
        column.batch(0, 0, 3)
    with pytest.raises(ArgumentError, match="smaller batch"):
        ColumnBatches(images, torch.arange(10), 11)


class _OnHost(TorchDispatchMode):
    """Counts operations on tensors of the CPU."""

    count = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        found = function(*args, **(kwargs or {}))
        given = tree_leaves((args, found))
        self.count += any(isinstance(x, torch.Tensor) and x.device.type == "cpu" for x in given)
        return found


@pytest.mark.parametrize("training", [True, False])
def test_a_batch_is_taken_without_the_host(training):
    """A copy from the host would wait for the step before."""
    images = torch.zeros(10, 1, 2, 2, dtype=torch.uint8, device="meta")
    labels = torch.zeros(10, dtype=torch.int64, device="meta")
    column = ColumnBatches(images, labels, 4, training=training)
    column.batch(0)
    with _OnHost() as seen:
        column.batch(1)
    assert seen.count == 0


def test_small_images_are_not_told_by_the_first_alone(tmp_path):
    """One thumbnail, or one damaged file, does not decide how large all images are."""
    data = write_shapes(tmp_path / "mixed", 4, 80)
    first = data / "train" / "cross" / "0.png"
    with Image.open(first) as image:
        image.resize((16, 12)).save(first)
    assert open_images(data).size == (80, 80)
    first.write_bytes(b"not an image")
    assert not open_images(data).small
    for path in (data / "train").glob("*/*"):
        path.write_bytes(b"not an image")
    with pytest.raises(DamagedError, match=r"cross/0\.png` is not an image"):
        open_images(data)


def test_repeats_see_a_sample_in_a_row_augmented_otherwise():
    images = torch.zeros(9, 1, 1, 1, dtype=torch.uint8)
    column = ColumnBatches(images, torch.arange(9), 9, repeats=3)
    labels, keys = column.batch(0).labels.view(3, 3), column.batch(0).keys
    assert (labels == labels[:, :1]).all()
    assert len({*keys.tolist()}) == 9
    assert not {*keys.tolist()} & {*column.batch(1).keys.tolist()}


def test_idx_files_are_found(tmp_path):
    def idx(array: torch.Tensor) -> bytes:
        sizes = b"".join(each.to_bytes(4, "big") for each in array.shape)
        return bytes([0, 0, 8, array.ndim]) + sizes + array.numpy().tobytes()

    generator = torch.Generator().manual_seed(0)
    for prefix, count in (("train", 64), ("t10k", 20)):
        pixels = torch.randint(0, 256, (count, 12, 12), generator=generator, dtype=torch.uint8)
        labels = (torch.arange(count) % 4).to(torch.uint8)
        (tmp_path / f"{prefix}-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx(pixels)))
        (tmp_path / f"{prefix}-labels-idx1-ubyte").write_bytes(idx(labels))
    data = open_images(tmp_path)
    assert (data.classes, data.channels, data.size) == (("0", "1", "2", "3"), 1, (12, 12))
    recipe = RECIPE.changed(epochs=1.0, average=0.0)
    settings = VisionRun(tmp_path / "run", device="cpu", show=False)
    found = train_images(data, "fast_resnet", recipe, settings, shape=TINY)
    assert found.score.count == 20
    (tmp_path / "t10k-labels-idx1-ubyte").unlink()
    with pytest.raises(ArgumentError, match="t10k-labels"):
        open_images(tmp_path)


def test_what_is_no_set_of_images_is_refused(tmp_path):
    with pytest.raises(ArgumentError, match="nowhere"):
        open_images(tmp_path / "nowhere")
    data = write_shapes(tmp_path / "shapes", 4, 16)
    (data / "test" / "disc").rename(data / "test" / "ball")
    with pytest.raises(ArgumentError, match="ball, disc"):
        open_images(data)
    with pytest.raises(ArgumentError, match="--valid"):
        open_images(tmp_path / "plan.json")
