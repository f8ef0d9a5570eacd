"""Folders of image models: the shape, the classes, the weights."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from hotgrid.contracts import Contract
from hotgrid.errors import ArgumentError, DamagedError, MissingPartError, StoreError
from hotgrid.files import read_regular, restore_folder, whole_folder
from hotgrid.store import Checkpoints
from hotgrid.vision._augment import Augmentation, NormalisePixels
from hotgrid.vision._models._create import create_model
from hotgrid.vision._models._model import VisionModel

from ._int8 import from_int8, to_int8

ABOUT, WEIGHTS = "model.json", "model.safetensors"
_FORMAT = 1
_DEFAULT = Path(__file__).parent.parent / "_default"
_IMAGES = Contract("batch channels height width")


@dataclass(frozen=True)
class ImageModel:
    """A model with its classes and the format of its images.

    Attributes:
        model: The model, in eval mode.
        classes: The names of its classes.
        normalise: What is done with bytes before.
        size: Height and width of the images that it was trained on.
        card: Its name, data and figures.
        path: The folder it is from; None if it is from none.
        share: The part of the height and width of a photo that it is shown, about the centre.
    """

    model: VisionModel
    classes: tuple[str, ...]
    normalise: NormalisePixels
    size: int
    card: Mapping[str, Any] = field(default_factory=dict)
    path: Path | None = None
    share: float = 1.0

    @property
    def name(self) -> str:
        """The name of the model."""
        return str(self.card.get("name") or self.model.config.name)

    @torch.no_grad()
    def scores(self, images: Tensor, *, flip: bool = False) -> Tensor:
        """Return the logits of a batch.

        Args:
            images: uint8 `[batch, channels, height, width]`, on the device of the model.
            flip: Add the logits of the mirrored images, and halve.
        """
        _IMAGES.check(images)
        keys = torch.zeros(len(images), dtype=torch.int64, device=images.device)
        ready = Augmentation(self.normalise)(images, keys=keys).images
        ready = ready.to(next(self.model.parameters()).dtype)
        found = self.model(ready).to(torch.float32)
        if flip:
            found = 0.5 * (found + self.model(ready.flip(3)).to(torch.float32))
        return found


def about(made: ImageModel, **more: Any) -> bytes:
    """Return the contents of `model.json`."""
    plain = {
        "format": _FORMAT,
        "model": made.model.config.to_dict(),
        "classes": list(made.classes),
        "mean": list(made.normalise.mean),
        "std": list(made.normalise.std),
        "size": made.size,
        "share": made.share,
        "card": dict(made.card),
    }
    return json.dumps(plain | more, indent=2, ensure_ascii=False).encode()


def save_image_model(folder: str | Path, made: ImageModel, *, int8: bool = False) -> None:
    """Write a model folder: `model.json` and `model.safetensors`.

    The folder is complete or absent. An existing model folder is replaced.

    Args:
        folder: Where to write.
        made: The model.
        int8: Write matrices and kernels in 8 bits: a quarter of the size, slightly other
            outputs.

    Raises:
        ArgumentError: The folder holds something else, or cannot be written.
        StoreError: The disk is full or failed.
    """
    path = Path(folder)
    if path.exists() and not (path / WEIGHTS).is_file() and any(path.iterdir()):
        raise ArgumentError(
            f"`{path}` holds something that is not a model folder; choose another folder"
        )
    state = {name: each.detach().cpu() for name, each in made.model.state_dict().items()}
    state = to_int8(state) if int8 else state
    kept = {name: each.contiguous() for name, each in state.items()}
    try:
        with whole_folder(path) as aside:
            save_file(kept, aside / WEIGHTS, {"format": "pt"})
            text = about(made, digest=_digest(aside / WEIGHTS), int8=int8)
            (aside / ABOUT).write_bytes(text)
    except SafetensorError as problem:
        raise StoreError(f"cannot write `{path}`: {problem}") from None


def load_image_model(
    where: str | Path | None = None, *, device: str | torch.device = "cpu"
) -> ImageModel:
    """Load a model of images.

    Args:
        where: A model folder, or the folder of a run of `hotgrid vision train` (its newest
            checkpoint that is good, with averaged weights where the run has them). None is
            the model that comes with hotgrid, if one does.
        device: Where to put it.

    Raises:
        ArgumentError: The folder is neither, or there is no such device.
        DamagedError: A file is missing or is not what was written; the message names it.
        MissingPartError: No model comes with this hotgrid.
    """
    expect_device(device)
    if where is None and not (_DEFAULT / ABOUT).is_file():
        raise MissingPartError(
            "no image model comes with this hotgrid. `hotgrid vision train --data DIR --model "
            "resnet18_cifar --out DIR` trains one; then give its folder with --model"
        )
    path = _DEFAULT if where is None else Path(where)
    restore_folder(path)
    if not (path / ABOUT).is_file():
        raise ArgumentError(
            f"`{path}` has no `{ABOUT}`: give the folder of a run of `hotgrid vision train`, "
            "or the `model` folder in it. Weights of timm alone do not name their classes: "
            "load them with `create_model(name, pretrained=FILE)`"
        )
    found = _described(path)
    found.model.to(device).eval()
    return found


def expect_device(device: str | torch.device) -> str | torch.device:
    """The device, if there is one.

    Raises:
        ArgumentError: There is no such device here.
    """
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as problem:
        reason = str(problem).splitlines()[0]
        raise ArgumentError(f"the device `{device}` cannot be used here: {reason}") from None
    return device


def _described(path: Path) -> ImageModel:
    try:
        given: Any = json.loads(read_regular(path / ABOUT, 1 << 24))
        version = given["format"]
        model = create_model(**given["model"])
        classes = tuple(map(str, given["classes"]))
        normalise = NormalisePixels(tuple(given["mean"]), tuple(given["std"]))
        size, share = int(given["size"]), float(given.get("share", 1.0))
        card = dict(given.get("card") or {})
    except (ValueError, KeyError, TypeError) as problem:
        raise DamagedError(f"`{path / ABOUT}` does not describe a model: {problem}") from None
    if version != _FORMAT:
        raise ArgumentError(
            f"`{path}` has format {version!r}; this hotgrid reads format {_FORMAT}. "
            "Update hotgrid"
        )
    if (path / WEIGHTS).is_file():
        if given.get("digest") != _digest(path / WEIGHTS):
            raise DamagedError(f"`{path / WEIGHTS}` does not match its checksum")
        try:
            state = from_int8(load_file(path / WEIGHTS))
        except SafetensorError as problem:
            raise DamagedError(f"`{path / WEIGHTS}` cannot be read: {problem}") from None
    elif (path / "checkpoints").is_dir():
        state, step = _of_run(path)
        card["step"] = step
    else:
        raise DamagedError(f"`{path}` has neither `{WEIGHTS}` nor `checkpoints`")
    try:
        model.load_state_dict(state)
    except RuntimeError as problem:
        raise DamagedError(f"the weights in `{path}` do not fit: {problem}") from None
    return ImageModel(model, classes, normalise, size, card, path, share)


def _of_run(path: Path) -> tuple[dict[str, Tensor], int]:
    checkpoint = Checkpoints(path / "checkpoints").load()
    state: dict[str, Tensor] = {}
    # Averages come after: they replace the weights.
    for prefix in ("model/", "average/"):
        for name, each in checkpoint.tensors.items():
            if name.startswith(prefix):
                state[name.removeprefix(prefix)] = each
    return state, checkpoint.step


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
