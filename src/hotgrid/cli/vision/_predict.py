"""`hotgrid vision predict`: classify image files."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Column, Table

from hotgrid.cli._terminal import Terminal
from hotgrid.errors import ArgumentError, DamagedError
from hotgrid.progress import Progress

if TYPE_CHECKING:
    from hotgrid.vision import ImageModel, Prediction


def predict(
    *files: Path,
    model: Path | None = None,
    top: int = 5,
    flip: bool = False,
    device: str = "cpu",
    out: Path | None = None,
    json: bool = False,
) -> int:
    """Classify image files.

    Files that cannot be read are named on standard error; the others are classified, and the
    exit code is 1.

    Args:
        files: The files.
        model: The folder of a run, or a model folder; by default the one that comes with
            hotgrid, if one does.
        top: How many classes of each file; by default 5.
        flip: Average over the image and its mirror image.
        device: Where to compute; by default cpu.
        out: A PNG file to draw the images and what they show in.
        json: Print one JSON object instead of a table.
    """
    from hotgrid.files import whole_file
    from hotgrid.vision import load_image_model
    from hotgrid.vision._training import prediction_picture, read_images

    made = load_image_model(model, device=device)
    found, problems = _predicted(made, files, top, flip)
    for problem in problems:
        print(f"hotgrid: {problem}", file=sys.stderr)  # noqa: T201
    code = 1 if problems else 0
    console = Terminal(highlight=False)
    if out is not None:
        files = tuple(Path(each.file) for each in found)
        images = read_images(files, max(made.size, 128), made.model.config.in_chans)
        names = [file.name for file in files]
        drawn = prediction_picture(images, names, [each.classes for each in found])
        with whole_file(out) as aside:
            aside.write_bytes(drawn)
    if json:
        plain = {each.file: dict(each.classes) for each in found}
        console.out(dumps(plain, indent=2, ensure_ascii=False), highlight=False)
        return code
    if model is None:
        console.print(
            f"{made.name} knows only: {', '.join(made.classes)}", soft_wrap=True, markup=False
        )
    columns = [f"{n}." for n in range(1, min(top, len(made.classes)) + 1)]
    # A long name continues in the next line instead of losing its end.
    table = Table(Column("file", overflow="fold"), *columns, box=None, pad_edge=False)
    for each in found:
        table.add_row(each.file, *(f"{name} {share:.1%}" for name, share in each.classes))
    console.for_tables().print(table)
    return code


def _predicted(
    made: ImageModel, files: Sequence[Path], top: int, flip: bool
) -> tuple[list[Prediction], list[Exception]]:
    """The predictions of the files that can be read, and what is wrong with the others."""
    from hotgrid.vision import predict_images

    if not files or top < 1:
        predict_images(made, files, top=top)
    found: list[Prediction] = []
    problems: list[Exception] = []
    with Progress("classify", len(files), unit="files", brief=True) as progress:
        for file in files:
            try:
                found += predict_images(made, [file], top=top, flip=flip)
            except (ArgumentError, DamagedError) as problem:
                problems.append(problem)
            progress.advance(1)
    if not found:
        raise problems[0]
    return found, problems
