"""`hotgrid vision augment`: draws what an augmentation does."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from hotgrid.cli._terminal import Terminal

_SIDE = 160


def augment(
    *,
    preview: Path,
    recipe: str = "swin",
    stages: Path | None = None,
    images: Annotated[tuple[Path, ...], Parameter(consume_multiple=True)] = (),
    versions: int = 8,
    size: int = _SIDE,
    seed: int = 0,
) -> None:
    """Draw what an augmentation does, on a contact sheet.

    Args:
        preview: The PNG file to write.
        recipe: The recipe of the augmentation, a name or a file; by default swin.
        stages: A JSON file of stages, instead of a recipe.
        images: Image files; by default synthetic pictures.
        versions: How many versions of each image; by default 8.
        size: Height and width of each; by default 160.
        seed: Seed of the random numbers; by default 0.
    """
    from PIL import Image

    from hotgrid.errors import ArgumentError
    from hotgrid.files import whole_file
    from hotgrid.vision import (
        StageSequence,
        augmented_rows,
        contact_sheet,
        find_recipe,
        read_augmentation,
    )
    from hotgrid.vision._augment import sample_images
    from hotgrid.vision._training import read_images

    for name, value in (("versions", versions), ("size", size)):
        if value < 1:
            raise ArgumentError(f"`--{name}` {value}: choose 1 or more")
    if stages is not None:
        stage = read_augmentation(stages)
    else:
        found = find_recipe(recipe)
        stage = StageSequence((found.augment, found.after))
    given = read_images(images, size) if images else sample_images(size=size)
    sheet = contact_sheet(augmented_rows(given, stage, versions, seed), versions + 1)
    with whole_file(preview) as aside:
        Image.fromarray(sheet.numpy()).save(aside, format="png")
    Terminal(highlight=False).print(
        f"{len(given)} images, {versions} versions of each: {preview}",
        soft_wrap=True,
        markup=False,
    )
