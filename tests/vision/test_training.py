"""Training: what is learned, what is written, and that a resumed run is the same run."""

import gzip
import json
import math
import os
import signal
from pathlib import Path

import pytest
import torch
from PIL import Image
from safetensors.torch import load_file
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from hotgrid.data import ClassFolders, DecodeCentreCrop, Normalise, Plan
from hotgrid.errors import ArgumentError, DamagedError
from hotgrid.train import read_run
from hotgrid.vision import (
    ColumnBatches,
    ImageScore,
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
from hotgrid.vision._training._evaluate import WrongSample
from hotgrid.vision._training._train import held_out_batches, write_pictures

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


def test_repeats_differ_where_epochs_and_batches_do_not_end_together():
    images = torch.zeros(5, 1, 1, 1, dtype=torch.uint8)
    column = ColumnBatches(images, torch.arange(5), 4, repeats=2)
    keys = [key for index in range(20) for key in column.batch(index).keys.tolist()]
    assert len({*keys}) == len(keys) == 80


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


def photos(place: Path, count: int = 6, size: int = 80) -> Path:
    """Photos larger than those kept in memory, whose class is that of their centre."""
    generator = torch.Generator().manual_seed(0)
    for part in ("train", "test"):
        for label, name in enumerate(("dark", "light")):
            folder = place / part / name
            folder.mkdir(parents=True)
            for n in range(count):
                noise = torch.randint(0, 128, (size, size, 3), generator=generator)
                image = (noise + 127 * label).to(torch.uint8).numpy()
                Image.fromarray(image).save(folder / f"{n}.png")
    return place


SHORT = RECIPE.changed(epochs=1.0, batch=4, average=0.0, flip=False)


def test_files_are_predicted_as_they_are_evaluated(tmp_path):
    data = open_images(photos(tmp_path / "photos"))
    settings = VisionRun(tmp_path / "run", device="cpu", show=False)
    train_images(data, "fast_resnet", SHORT, settings, size=16, shape=TINY)
    model = load_image_model(tmp_path / "run" / "model")
    batch = held_out_batches(model, data, 12).batch(0)
    files = [data.valid.open().place(n) for n in range(12)]
    shares = model.scores(batch.images).softmax(1)
    for row, found in zip(shares, predict_images(model, files), strict=True):
        assert dict(found.classes)["light"] == pytest.approx(row[1].item(), abs=1e-6)


def test_damaged_images_are_not_evaluated(tmp_path):
    place = photos(tmp_path / "photos")
    # The whole last batch of four, and one of another.
    for name in ("dark/1", *(f"light/{n}" for n in range(2, 6))):
        (place / "test" / f"{name}.png").write_bytes(b"damaged")
    settings = VisionRun(tmp_path / "run", device="cpu", show=False)
    data = open_images(place)
    found = train_images(data, "fast_resnet", SHORT, settings, size=16, shape=TINY)
    assert found.score.count == 7
    assert found.score.confusion.sum(1).tolist() == [5, 2]
    shown = read_run(tmp_path / "run").curves["valid/loss"]
    assert shown[-1][1] == pytest.approx(found.score.loss, rel=1e-5)


def write_idx(place: Path, *sizes: int, kind: int = 8, held: tuple[int, ...] = ()) -> Path:
    place.mkdir(parents=True)
    for prefix, each in (("train", sizes), ("t10k", held or sizes)):
        dims = (8, *each)
        head = bytes([0, 0, kind, len(dims)]) + b"".join(n.to_bytes(4, "big") for n in dims)
        (place / f"{prefix}-images-idx3-ubyte").write_bytes(head + bytes(math.prod(dims)))
        labels = bytes([0, 0, 8, 1, *(8).to_bytes(4, "big"), *(4 * [0, 1])])
        (place / f"{prefix}-labels-idx1-ubyte").write_bytes(labels)
    return place


@pytest.mark.parametrize(
    ("sizes", "size", "channels"),
    [((80, 80), 80, 1), ((80, 80, 3), 80, 3), ((12, 12, 3), 12, 3), ((12, 16, 1), 16, 1)],
)
def test_images_of_idx_files_are_trained_on_as_they_are(tmp_path, sizes, size, channels):
    settings = VisionRun(tmp_path / "run", device="cpu", show=False)
    data = open_images(write_idx(tmp_path / "idx", *sizes))
    made = train_images(data, "fast_resnet", SHORT, settings, shape=TINY).model
    assert (made.size, made.share, len(made.normalise.mean)) == (size, 1.0, channels)


def test_classes_of_any_name_are_drawn(tmp_path):
    names = ("$10", "$2^", "\udcff")
    score = ImageScore(
        count=3,
        accuracy=1 / 3,
        top5=1.0,
        loss=1.0,
        confusion=torch.eye(3, dtype=torch.int64),
        worst=(WrongSample(0, names[0], names[1], 0.9, 2.0),),
        worst_images=torch.zeros(1, 3, 8, 8, dtype=torch.uint8),
    )
    write_pictures(tmp_path, score, names)
    assert (tmp_path / "confusion.png").is_file() and (tmp_path / "worst.png").is_file()


def test_idx_files_that_training_would_misread_are_refused(tmp_path):
    settings = VisionRun(tmp_path / "run", device="cpu", show=False)
    large = open_images(write_idx(tmp_path / "large", 80, 80))
    with pytest.raises(
        ArgumentError, match="80 pixels, so `size` cannot be 32; change the plan or"
    ):
        train_images(large, "fast_resnet", SHORT, settings, size=32, shape=TINY)
    for number, (options, words) in enumerate(
        [
            ({"sizes": (80, 70)}, r"have the sizes \[80, 70\]"),
            ({"sizes": (80, 80), "held": (90, 90)}, r"held out \[90, 90\]; expected"),
            ({"sizes": (12, 12), "held": (12, 12, 3)}, "expected the same channels"),
            ({"sizes": (12,)}, r"is uint8\[12\]; expected bytes"),
            ({"sizes": (12, 12, 2)}, r"is uint8\[12,12,2\]"),
            ({"sizes": (12, 12), "kind": 9}, r"is int8\[12,12\]"),
        ]
    ):
        place = write_idx(tmp_path / str(number), *options.pop("sizes"), **options)
        with pytest.raises(ArgumentError, match=words):
            open_images(place)


def planned(where: Path, classes: Path, *, height: int = 16, floats: bool = False) -> Path:
    plan = Plan(ClassFolders(str(classes)))
    plan = plan.then(DecodeCentreCrop(height, 16), "data", "bytes" if floats else "pixels")
    plan = plan.then(Normalise(), "bytes", "pixels") if floats else plan
    plan.yielding("pixels", "label").write(where)
    return where


def test_the_plan_decides_the_size_of_images(tmp_path):
    place = photos(tmp_path / "photos")
    plans = [planned(tmp_path / f"{part}.json", place / part) for part in ("train", "test")]
    settings = VisionRun(tmp_path / "run", device="cpu", show=False)
    data = open_images(*plans)
    with pytest.raises(ArgumentError, match="16 pixels, so `size` cannot be 32"):
        train_images(data, "fast_resnet", SHORT, settings, size=32, shape=TINY)
    made = train_images(data, "fast_resnet", SHORT, settings, shape=TINY).model
    assert (made.size, made.share) == (16, 1.0)


def test_a_plan_that_training_would_misread_is_refused(tmp_path):
    place = photos(tmp_path / "photos", count=2)
    train = planned(tmp_path / "train.json", place / "train")
    floats = planned(tmp_path / "floats.json", place / "train", floats=True)
    with pytest.raises(ArgumentError, match=r"is float32\[16,16,3\]; expected square images"):
        open_images(floats, train)
    wide = planned(tmp_path / "wide.json", place / "train", height=8)
    with pytest.raises(ArgumentError, match=r"uint8\[8,16,3\]; expected square"):
        open_images(train, wide)
    (place / "test" / "light").rename(place / "test" / "bright")
    with pytest.raises(ArgumentError, match="different classes: bright, light"):
        open_images(train, planned(tmp_path / "test.json", place / "test"))
    with pytest.raises(ArgumentError, match="is a plan, so `--valid"):
        open_images(train, place / "train")


@pytest.mark.parametrize("name", ["accumulate", "workers", "evaluate_every", "save_every"])
def test_a_run_with_a_number_of_zero_is_refused(name):
    with pytest.raises(ArgumentError, match=f"`{name}` is 0; choose a number above 0"):
        VisionRun("run", **{name: 0})


def test_a_device_that_is_not_there_is_named(shapes, tmp_path):
    with pytest.raises(ArgumentError, match="the device `nowhere` cannot be used here"):
        settings = VisionRun(tmp_path / "run", device="nowhere")
        train_images(open_images(shapes), "fast_resnet", RECIPE, settings, shape=TINY)
    with pytest.raises(ArgumentError, match="the device `nowhere` cannot be used here"):
        load_image_model(device="nowhere")
