"""`hotgrid sphere query`: leaves in a cone."""

from __future__ import annotations

import math
from dataclasses import asdict
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table

from hotgrid.cli._terminal import Terminal
from hotgrid.cli._whole_number import WholeNumber
from hotgrid.errors import ArgumentError

if TYPE_CHECKING:
    from torch import Tensor

    from hotgrid.blt import Sphere

_SHOWN = 60


def query(
    corpus: Path,
    text: str | None = None,
    /,
    *,
    node: WholeNumber = None,
    direction: str | None = None,
    angle: float = 20.0,
    top: int = 10,
    zone: str | None = None,
    model: Path | None = None,
    device: str = "cpu",
    json: bool = False,
) -> None:
    """Find the leaves in a cone around a text, a node or a direction.

    Args:
        corpus: The folder of a corpus with places, or a sidecar.
        text: The text to look for.
        node: The number of a leaf to look around.
        direction: A direction X,Y,Z; the north pole is 0,0,1.
        angle: From the axis of the cone to its side, in degrees; by default 20.
        top: How many to show; by default 10.
        zone: Only leaves of this zone: instruction, content or qa. For a text, also where
            it is looked for; by default the zone with most leaves.
        model: The entropy model of the corpus, for a text if directions are by embeddings.
        device: Where that runs; by default cpu.
        json: Print one JSON object instead.
    """
    if sum(each is not None for each in (text, node, direction)) != 1:
        raise ArgumentError("give a text, --node or --direction; one of them")
    if not 0 <= angle <= 180:
        raise ArgumentError(f"`--angle` is {angle}; expected 0 to 180 degrees")
    from hotgrid.blt import Sphere

    sphere = Sphere(corpus, model=model, device=device)
    axis = _axis(sphere, text, node, direction, zone)
    found, angles = sphere.cone(axis, math.radians(angle), zone=zone)
    hits: list[dict[str, Any]] = [
        {"angle": math.degrees(each), **asdict(sphere.leaf(at))}
        for at, each in zip(found[:top].tolist(), angles[:top].tolist(), strict=True)
    ]
    console = Terminal(highlight=False)
    if json:
        whole = {"axis": axis.tolist(), "angle": angle, "inside": len(found), "hits": hits}
        console.out(dumps(whole, indent=2), highlight=False)
        return
    table = Table(box=None, pad_edge=False)
    for name in ("node", "angle", "zone", "shell", "entropy"):
        table.add_column(name, justify="left" if name == "zone" else "right")
    table.add_column("document")
    table.add_column("text", no_wrap=True)
    for hit in hits:
        numbers = (str(hit["node"]), f"{hit['angle']:.2f}", hit["zone"], str(hit["shell"]))
        shown = dumps(hit["text"][:_SHOWN], ensure_ascii=False)
        table.add_row(*numbers, f"{hit['entropy']:.2f}", _plain(hit["document"]), shown)
    console.for_tables().print(table, markup=False)
    console.print(
        f"{len(found):,} of {len(sphere):,} leaves are within {angle:g} degrees",
        soft_wrap=True,
    )


def _axis(
    sphere: Sphere, text: str | None, node: int | None, direction: str | None, zone: str | None
) -> Tensor:
    from hotgrid.blt._sphere._sphere import parse_direction

    if text is not None:
        return sphere.direction_of(text, zone=zone)
    return parse_direction(direction) if direction else sphere.units[sphere.at(node or 0)]


def _plain(text: str) -> str:
    """A name from an archive may hold anything, also what moves the cursor."""
    return "".join(each if each.isprintable() else "\ufffd" for each in text)
