"""Models for other programs: torch.export and ONNX, checked against the model."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn

from hotgrid.errors import ArgumentError, MissingPartError
from hotgrid.files import whole_file

from ._folder import ImageModel

ExportFormat = Literal["onnx", "torch-export"]
_NEEDED = ("onnx", "onnxscript")
# Of outputs around 1, in float32; another program may add in another order.
_CLOSE = 1e-4


@dataclass(frozen=True)
class ExportCheck:
    """An exported file, and how far its outputs are from the model's.

    Attributes:
        file: The file.
        apart: The largest difference of a score.
    """

    file: Path
    apart: float


class _FromBytes(nn.Module):
    """A model that takes bytes: normalising is a part of it."""

    mean: Tensor
    std: Tensor

    def __init__(self, made: ImageModel) -> None:
        super().__init__()
        self.model = made.model
        mean, std = (torch.tensor(each)[:, None, None] for each in _both(made))
        self.register_buffer("mean", 255.0 * mean)
        self.register_buffer("std", 255.0 * std)

    def forward(self, images: Tensor) -> Tensor:
        """Return the scores of bytes `[batch, channels, height, width]`."""
        return self.model((images.to(torch.float32) - self.mean) / self.std)


def _both(made: ImageModel) -> tuple[tuple[float, ...], tuple[float, ...]]:
    return made.normalise.mean, made.normalise.std


def export_model(made: ImageModel, file: str | Path, kind: ExportFormat) -> ExportCheck:
    """Write a model for other programs, and compare its outputs.

    It takes bytes, `[batch, channels, height, width]` uint8 with any batch, and returns
    scores.

    Args:
        made: The model.
        file: Where to write; `.onnx` or `.pt2` is usual.
        kind: `onnx`, or `torch-export`, which `torch.export.load` reads.

    Raises:
        MissingPartError: ONNX is asked for, and `onnx` or `onnxscript` is not installed.
        ArgumentError: The outputs of what was written differ from the model's.
    """
    path = Path(file)
    if kind not in ("onnx", "torch-export"):
        raise ArgumentError(f"`kind` is {kind!r}; choose onnx or torch-export")
    if kind == "onnx" and (missing := [n for n in _NEEDED if not importlib.util.find_spec(n)]):
        raise MissingPartError(
            f"exporting to ONNX needs {' and '.join(missing)}: pip install 'hotgrid[onnx]'"
        )
    module = _FromBytes(made).cpu().eval()
    generator = torch.Generator().manual_seed(0)
    shape = (2, made.model.config.in_chans, made.size, made.size)
    images = torch.randint(0, 256, shape, generator=generator, dtype=torch.uint8)
    with whole_file(path) as aside, torch.no_grad():
        write = _write_onnx if kind == "onnx" else _write_export
        loaded = write(module, images, aside)
        more = torch.randint(0, 256, (3, *shape[1:]), generator=generator, dtype=torch.uint8)
        apart = max(float((loaded(x) - module(x)).abs().max()) for x in (images, more))
        if not apart <= _CLOSE:
            raise ArgumentError(
                f"the exported model differs from `{made.name}` by {apart:.2g}; "
                "it is not written"
            )
    return ExportCheck(path, apart)


def _write_export(module: nn.Module, images: Tensor, path: Path) -> Callable[[Tensor], Tensor]:
    torch.export.save(_program(module, images), path)
    return torch.export.load(path).module()


def _program(module: nn.Module, images: Tensor) -> torch.export.ExportedProgram:
    batch = torch.export.Dim("batch", min=1)
    # Strict: by Dynamo, which keeps the batch free where contracts look at it.
    return torch.export.export(module, (images,), dynamic_shapes=({0: batch},), strict=True)


def _write_onnx(module: nn.Module, images: Tensor, path: Path) -> Callable[[Tensor], Tensor]:
    torch.onnx.export(
        _program(module, images),
        (images,),
        path,
        dynamo=True,
        input_names=["images"],
        output_names=["scores"],
        external_data=False,
        verbose=False,
    )
    reference: Any = importlib.import_module("onnx.reference")
    evaluator = reference.ReferenceEvaluator(str(path))

    def run(x: Tensor) -> Tensor:
        return torch.from_numpy(evaluator.run(None, {"images": x.numpy()})[0])

    return run
