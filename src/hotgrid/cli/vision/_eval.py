"""`hotgrid vision eval`: measure a model."""

from __future__ import annotations

from json import dumps
from pathlib import Path

from rich.table import Table

from hotgrid.cli._terminal import Terminal


def evaluate(
    run: Path,
    *,
    data: Path,
    valid: Path | None = None,
    batch: int = 256,
    flip: bool = False,
    device: str = "cpu",
    out: Path | None = None,
    json: bool = False,
) -> None:
    """Evaluate a model on held-out images.

    Args:
        run: The folder of a run, or a model folder.
        data: The images it was trained on; their held-out part is measured.
        valid: A folder of class folders, or a plan, to measure on instead.
        batch: How many images at once; by default 256.
        flip: Average over images and their mirror images.
        device: Where to compute; by default cpu.
        out: A folder for pictures of the confusion matrix and of the worst samples.
        json: Print one JSON object instead of a table.
    """
    from hotgrid.vision import load_image_model, open_images, score_images
    from hotgrid.vision._training._train import held_out_batches, write_pictures

    made = load_image_model(run, device=device)
    images = open_images(data, valid)
    score = score_images(made, held_out_batches(made, images, batch), flip=flip)
    console = Terminal(highlight=False)
    if out is not None:
        write_pictures(out, score, made.classes)
    if json:
        plain = {**score.figures(), "confusion": score.confusion.tolist()}
        console.out(dumps(plain, indent=2), highlight=False)
        return
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_row("images", f"{score.count:,}")
    table.add_row("accuracy", f"{score.accuracy:.2%}")
    table.add_row("top-5 accuracy", f"{score.top5:.2%}")
    table.add_row("loss", f"{score.loss:.4f}")
    console.print(made.name, markup=False)
    console.for_tables().print(table)
    each = Table("class", "images", "right", "most often taken for", box=None, pad_edge=False)
    for row, name in zip(score.confusion, made.classes, strict=True):
        place = made.classes.index(name)
        others = row.clone()
        others[place] = 0
        wrong = made.classes[int(others.argmax())] if int(others.sum()) else "-"
        share = f"{int(row[place]) / max(1, int(row.sum())):.1%}"
        each.add_row(name, f"{int(row.sum()):,}", share, wrong)
    console.for_tables().print(each)
