"""`hotgrid sphere place`: places for the leaves of a corpus."""

from dataclasses import asdict
from json import dumps
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.table import Table

from hotgrid.cli._terminal import Terminal


def place(
    corpus: Path,
    /,
    *,
    zone: tuple[str, ...] = (),
    by: str | None = None,
    shells: int = 256,
    inner: Annotated[float, Parameter(name=("--inner", "--min-radius"))] = 32.0,
    outer: float = 512.0,
    temperature: Annotated[
        float, Parameter(name=("--temperature", "--entropy-temperature"))
    ] = 0.5,
    entropy_weighted: Annotated[bool, Parameter(negative="--no-entropy-weighted")] = True,
    device: str = "cpu",
    json: bool = False,
) -> None:
    """Place the leaves of a corpus on shells, and write that to its sidecar.

    Args:
        corpus: The folder of a corpus, or a sidecar.
        zone: ZONE, or ZONE=PATTERN for names of documents and labels of views; repeatable.
        by: The source of directions: embeddings (by default if the corpus has them),
            ngrams, or order.
        shells: How many shells; by default 256.
        inner: The radius of the innermost; by default 32.
        outer: The radius of the outermost; by default 512.
        temperature: In nats; the lower it is, the more entropies count; by default 0.5.
        entropy_weighted: Weigh leaves by entropy as well as by prominence; by default yes.
        device: Where to compute; by default cpu.
        json: Print one JSON object instead of a table.
    """
    from hotgrid.blt import place_corpus

    found = place_corpus(
        corpus,
        zones=zone,
        by=by,
        shells=shells,
        inner=inner,
        outer=outer,
        temperature=temperature,
        entropy_weighted=entropy_weighted,
        device=device,
    )
    console = Terminal(highlight=False)
    if json:
        console.out(dumps(asdict(found), indent=2), highlight=False)
        return
    table = Table(box=None, pad_edge=False)
    for name in ("shells", "radius", "leaves", "entropy", "prominence"):
        table.add_column(name, justify="right")
    for row in reversed(found.rows):
        prominence = row["prominence"]
        table.add_row(
            f"{row['first']}-{row['last']}",
            f"{row['least_radius']:.0f}-{row['most_radius']:.0f}",
            f"{row['leaves']:,}",
            f"{row['entropy']:.3f}",
            "-" if prominence is None else f"{prominence:.2f}",
        )
    console.for_tables().print(table)
    zones = ", ".join(f"{count:,} in {name}" for name, count in found.zones.items() if count)
    console.print(
        f"{found.nodes:,} leaves placed by {found.by} in {found.steps} steps: {zones}",
        soft_wrap=True,
    )
