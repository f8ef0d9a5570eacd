"""`train_images`: from images to a model."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from hotgrid.cluster import Communicator, world
from hotgrid.errors import ArgumentError
from hotgrid.files import whole_file
from hotgrid.train import (
    Accuracy,
    Evaluation,
    Loss,
    Saving,
    Throughput,
    TopAccuracy,
    Trainer,
    write_report,
)
from hotgrid.vision._augment import Augmentation, NormalisePixels, StageSequence
from hotgrid.vision._models._create import create_model
from hotgrid.vision._models._fast_resnet import FastResNet
from hotgrid.vision._models._model import VisionModel

from ._column import ColumnBatches, KeyedImages, StreamedImages, image_column
from ._evaluate import ImageScore, score_images
from ._folder import (
    ABOUT,
    ImageModel,
    about,
    expect_device,
    load_image_model,
    save_image_model,
)
from ._optimizer import recipe_optimizer
from ._pictures import confusion_picture, worst_picture
from ._recipe import VisionRecipe
from ._sources import ImageData

_SHOWN = 50
# Images that a fast ResNet is whitened with.
_WHITENED = 512
# The means of the values that ImageNet has for its three channels.
_GREY_MEAN, _GREY_STD = (0.449,), (0.226,)


@dataclass(frozen=True)
class VisionRun:
    """How a run is carried out.

    Args:
        folder: The folder of the run.
        resume: Continue the run in the folder; `auto` begins one if there is none.
        device: Where to compute; by default a GPU if there is one.
        precision: `bfloat16` computes in it where that is safe.
        compiled: Compile the model and the augmentation.
        sharding: `copies` keeps the model on every rank, `cut` divides it over them.
        accumulate: Micro-batches of a step: less memory, the same batch.
        workers: Threads that decode large images; by default one for every core.
        evaluate_every: Evaluate every N epochs; by default ten times in all.
        save_every: Save every N steps; by default once an epoch.
        seed: The seed of weights, order and augmentation.
        show: Show progress on standard error.

    Raises:
        ArgumentError: A number is not above 0.
    """

    folder: str | Path
    resume: bool | Literal["auto"] = False
    device: str | None = None
    precision: Literal["float32", "bfloat16"] = "float32"
    compiled: bool = False
    sharding: Literal["copies", "cut"] = "copies"
    accumulate: int = 1
    workers: int | None = None
    evaluate_every: float | None = None
    save_every: int | None = None
    seed: int = 0
    show: bool | None = None

    def __post_init__(self) -> None:
        for name in ("accumulate", "workers", "evaluate_every", "save_every"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ArgumentError(f"`{name}` is {value!r}; choose a number above 0")

    def where(self) -> str:
        """The device."""
        return self.device or ("cuda" if torch.cuda.is_available() else "cpu")


@dataclass(frozen=True)
class TrainedImages:
    """The result of a run.

    Attributes:
        model: The model, which is also in `model` in the folder of the run.
        score: How good it is on the held-out images; None on ranks other than the first, and
            for a run that was stopped.
        why: `finished`, or `stopped` by SIGTERM.
    """

    model: ImageModel
    score: ImageScore | None
    why: str


def train_images(
    data: ImageData,
    model: str,
    recipe: VisionRecipe,
    run: VisionRun,
    *,
    size: int | None = None,
    pretrained: str | Path | None = None,
    shape: Mapping[str, Any] | None = None,
) -> TrainedImages:
    """Train a model on images.

    Args:
        data: The images, as `open_images` finds them.
        model: The name of a model.
        recipe: Rates, epochs and augmentation.
        run: The folder, the device and so on.
        size: Height and width of images; by default that of small images, or what the model
            is made for.
        pretrained: A file of weights to begin with.
        shape: Other numbers of the model's configuration, such as its depths.

    Raises:
        ArgumentError: Sizes do not fit together, or the run cannot be resumed.
        UnstableError: The loss is no longer finite; earlier checkpoints stay as they are.
    """
    _expect_parts(data, recipe, run)
    if data.planned and size not in (None, data.planned):
        raise ArgumentError(
            f"the images of `{data.name}` have {data.planned} pixels, so `size` cannot be "
            f"{size}; change the plan or the files"
        )
    size = _usual_size(data, model) if size is None else size
    ranks = world(expect_device(run.where()))
    torch.manual_seed(run.seed)
    net = _network(data, model, recipe, run, size, pretrained, shape or {})
    train, valid, normalise = _batches(data, recipe, run, size, run.where())
    if isinstance(net, FastResNet):
        _whiten(net, train, normalise, run.where())
    card = {
        "name": Path(run.folder).name,
        "data": data.name,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "recipe": recipe.to_plain(),
    }
    made = ImageModel(net, data.classes, normalise, size, card, share=data.share)
    asked = {
        "data": data.name,
        "model": json.dumps(net.config.to_dict()),
        "recipe": json.dumps(recipe.to_plain()),
        "pretrained": str(pretrained and Path(pretrained).name),
    }
    trainer = _trainer(made, recipe, run, train, valid, ranks, asked)
    try:
        outcome = trainer.run(resume=run.resume)
        if ranks.rank or outcome.why == "stopped":
            return TrainedImages(made, None, outcome.why)
        return _finished(run, recipe, card, valid, outcome.why)
    finally:
        for each in (train, valid):
            if isinstance(each, StreamedImages):
                each.close()


def _expect_parts(data: ImageData, recipe: VisionRecipe, run: VisionRun) -> None:
    if recipe.repeats > 1 and not data.small:
        raise ArgumentError(
            f"`repeats` is {recipe.repeats}, which needs images that are kept in memory (up to "
            "64 pixels); use `--set repeats=1`"
        )
    if recipe.batch % run.accumulate:
        raise ArgumentError(
            f"a batch of {recipe.batch} images cannot be made of {run.accumulate} equal parts"
        )


def _network(
    data: ImageData,
    model: str,
    recipe: VisionRecipe,
    run: VisionRun,
    size: int,
    pretrained: str | Path | None,
    shape: Mapping[str, Any],
) -> VisionModel:
    net = create_model(
        model,
        pretrained=pretrained,
        num_classes=len(data.classes),
        in_chans=data.channels,
        image_size=size,
        drop_path=recipe.drop_path,
        **shape,
    ).to(run.where())
    if torch.device(run.where()).type == "cuda":
        net = net.to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]
    return net


def _whiten(
    net: FastResNet,
    train: ColumnBatches | StreamedImages,
    normalise: NormalisePixels,
    device: str,
) -> None:
    first = train.batch(0)
    bytes_, keys = first.images.to(device)[:_WHITENED], first.keys.to(device)[:_WHITENED]
    net.whiten(Augmentation(normalise)(bytes_, keys=keys).images)


def _trainer(
    made: ImageModel,
    recipe: VisionRecipe,
    run: VisionRun,
    train: ColumnBatches | StreamedImages,
    valid: ColumnBatches | StreamedImages,
    ranks: Communicator,
    asked: Mapping[str, str],
) -> Trainer:
    epoch = train.rows / recipe.batch
    steps = max(1, round(recipe.epochs * epoch))
    every = run.evaluate_every or max(1.0, recipe.epochs / 10)
    top = (TopAccuracy(5),) if len(made.classes) > 5 else ()
    return Trainer(
        made.model,
        image_loss(made, recipe, compiled=run.compiled),
        train,
        lambda module: recipe_optimizer(module, recipe, steps),
        steps=steps,
        folder=run.folder,
        device=run.where(),
        ranks=ranks,
        sharding=run.sharding,
        accumulate=run.accumulate,
        precision=run.precision,
        compiled=_compiled(run, ranks.size),
        average=recipe.average or None,
        metrics=(Accuracy(), Throughput()),
        evaluation=Evaluation(valid, max(1, round(every * epoch)), (Loss(), Accuracy(), *top)),
        saving=Saving(every=run.save_every or max(1, round(epoch)), last=2),
        log_every=max(1, steps // _SHOWN),
        seed=run.seed,
        asked=asked,
        files={ABOUT: about(made)},
        show=run.show,
    )


def _compiled(run: VisionRun, ranks: int) -> bool | Literal["graphs"]:
    """Compile in CUDA graphs where a step is one pass on one GPU."""
    one = run.accumulate == ranks == 1
    return "graphs" if run.compiled and one and "cuda" in run.where() else run.compiled


def _finished(
    run: VisionRun,
    recipe: VisionRecipe,
    card: dict[str, Any],
    valid: ColumnBatches | StreamedImages,
    why: str,
) -> TrainedImages:
    """Evaluate the weights as they were saved, write the model and the report."""
    folder = Path(run.folder)
    found = load_image_model(folder, device=run.where())
    score = score_images(found, valid, flip=recipe.flip)
    found = replace(found, card={**card, "figures": score.figures()})
    save_image_model(folder / "model", found)
    write_pictures(folder, score, found.classes)
    pictures = {"confusion matrix": "confusion.png", "highest losses": "worst.png"}
    write_report(folder, pictures={title: folder / name for title, name in pictures.items()})
    return TrainedImages(replace(found, path=folder / "model"), score, why)


def write_pictures(folder: Path, score: ImageScore, classes: tuple[str, ...]) -> None:
    """Write `confusion.png` and `worst.png`."""
    for name, data in (
        ("confusion.png", confusion_picture(score, classes)),
        ("worst.png", worst_picture(score)),
    ):
        with whole_file(folder / name) as aside:
            aside.write_bytes(data)


def image_loss(
    made: ImageModel, recipe: VisionRecipe, *, compiled: bool = False
) -> Callable[[Any, KeyedImages], dict[str, Any]]:
    """Return the step function: augment where the model trains, and the cross entropy."""
    count = len(made.classes)
    # In one sequence, so that it is one compiled function.
    stages = StageSequence((recipe.augment, made.normalise, recipe.after))
    training = Augmentation(stages, classes=count, compiled=compiled)
    plain = Augmentation(made.normalise, compiled=compiled)

    def loss(module: Any, batch: KeyedImages) -> dict[str, Any]:
        augment = training if module.training else plain
        images, targets = augment(batch.images, batch.labels, keys=batch.keys)
        if images.device.type == "cuda":
            images = images.contiguous(memory_format=torch.channels_last)
        scores = module(images).to(torch.float32)
        wanted = batch.labels if targets is None else targets
        outputs = {"scores": scores, "targets": batch.labels}
        if module.training:
            found = F.cross_entropy(scores, wanted, label_smoothing=recipe.smoothing)
            return outputs | {"loss": found}
        # Batches differ in size here: the last is short, and damaged images are left out.
        total, count = F.cross_entropy(scores, wanted, reduction="sum"), len(scores)
        return outputs | {"loss": total / max(1, count), "count": float(count)}

    return loss


def _usual_size(data: ImageData, model: str) -> int:
    if data.planned:
        return data.planned
    if data.size is not None and data.small:
        return max(data.size)
    with torch.device("meta"):
        return create_model(model).config.image_size


def _batches(
    data: ImageData, recipe: VisionRecipe, run: VisionRun, size: int, device: str
) -> tuple[ColumnBatches | StreamedImages, ColumnBatches | StreamedImages, NormalisePixels]:
    """Batches to train on and to evaluate on, and how to normalise them."""
    micro = recipe.batch // run.accumulate
    if not data.small:
        pin = torch.device(device).type == "cuda"
        train, valid = (
            StreamedImages(
                data.plan(part, size, size, run.seed),
                micro,
                training=part == "train",
                workers=run.workers,
                pin=pin,
            )
            for part in ("train", "valid")
        )
        grey = NormalisePixels(_GREY_MEAN, _GREY_STD)
        return train, valid, NormalisePixels() if data.channels == 3 else grey
    (images, labels), (held, held_labels) = (
        image_column(data.plan(part, size, size), device, size) for part in ("train", "valid")
    )
    mean, std = pixel_statistics(images)
    train = ColumnBatches(images, labels, micro, seed=run.seed, repeats=recipe.repeats)
    valid = ColumnBatches(held, held_labels, max(micro, 256), training=False)
    return train, valid, NormalisePixels(mean, std)


def held_out_batches(
    made: ImageModel, data: ImageData, batch: int
) -> ColumnBatches | StreamedImages:
    """The held-out images as a model takes them, in order.

    Raises:
        ArgumentError: The images have other classes than the model.
    """
    if data.classes != made.classes:
        raise ArgumentError(
            f"the images of `{data.name}` have the classes {_few(data.classes)}, and the model "
            f"knows {_few(made.classes)}"
        )
    plan = data.plan("valid", made.size, made.size)
    if not data.small:
        return StreamedImages(plan, batch, training=False)
    device = next(made.model.parameters()).device
    return ColumnBatches(*image_column(plan, device, made.size), batch, training=False)


def _few(names: tuple[str, ...]) -> str:
    return ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")


def pixel_statistics(images: Tensor) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and standard deviation of each channel of bytes, from 0 to 1, to four digits."""
    count = images.numel() // images.shape[1]
    total = torch.zeros(2, images.shape[1], dtype=torch.float64, device=images.device)
    # In parts: float64 of all images would be eight times their size.
    for part in images.split(4096):
        wide = part.to(torch.float64)
        total += torch.stack((wide.sum((0, 2, 3)), wide.square().sum((0, 2, 3))))
    mean = total[0] / count
    std = (total[1] / count - mean.square()).clamp(min=1.0).sqrt()
    rounded = [[round(x / 255.0, 4) for x in each.tolist()] for each in (mean, std)]
    return tuple(rounded[0]), tuple(rounded[1])
