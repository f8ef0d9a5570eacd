"""`hotgrid vision predict`: classify image files."""

from __future__ import annotations

from json import dumps
from pathlib import Path

from rich.table import Column, Table

from hotgrid.cli._terminal import Terminal


def predict(
    *files: Path,
    model: Path | None = None,
    top: int = 5,
    flip: bool = False,
    device: str = "cpu",
    out: Path | None = None,
    json: bool = False,
) -> None:
    """Classify image files.

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
    from hotgrid.vision import load_image_model, predict_images
    from hotgrid.vision._training import prediction_picture, read_images

    made = load_image_model(model, device=device)
    found = predict_images(made, files, top=top, flip=flip)
    console = Terminal(highlight=False)
    if out is not None:
        images = read_images(files, max(made.size, 128), made.model.config.in_chans)
        names = [file.name for file in files]
        drawn = prediction_picture(images, names, [each.classes for each in found])
        with whole_file(out) as aside:
            aside.write_bytes(drawn)
    if json:
        plain = {each.file: dict(each.classes) for each in found}
        console.out(dumps(plain, indent=2, ensure_ascii=False), highlight=False)
        return
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
