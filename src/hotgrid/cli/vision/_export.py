"""`hotgrid vision export`: a model for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from hotgrid.cli._terminal import Terminal


def export(
    run: Path,
    *,
    format: Literal["onnx", "torch-export"] = "torch-export",
    out: Path | None = None,
) -> None:
    """Write a model for other programs, and check what it computes.

    Args:
        run: The folder of a run, or a model folder.
        format: onnx or torch-export; by default torch-export.
        out: The file; by default model.onnx or model.pt2 next to the model.
    """
    from hotgrid.vision import export_model, load_image_model

    file = out or run / ("model.onnx" if format == "onnx" else "model.pt2")
    found = export_model(load_image_model(run), file, format)
    Terminal(highlight=False).print(
        f"{found.file}: scores differ from the model's by at most {found.apart:.1e}",
        soft_wrap=True,
        markup=False,
    )
