"""`hotgrid ingest export`: a corpus in another format."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from hotgrid.cli._terminal import Terminal


def export(
    folder: Path,
    /,
    *,
    to: str,
    out: Path,
    samples: Annotated[int, Parameter(name=("--samples", "--webdataset-shard-size"))] = 1000,
) -> None:
    """Write a corpus as WebDataset, JSON lines, or JSON of its sidecar.

    Args:
        folder: The corpus.
        to: webdataset, jsonl, or json: the sidecar in the schema of BLT-Burn.
        out: A folder for webdataset, else a file.
        samples: Documents of a tar file; by default 1000.
    """
    from hotgrid.blt import export_corpus

    files = export_corpus(folder, to, out, samples=samples)
    console = Terminal(highlight=False)
    for each in files:
        console.print(f"{each}  {each.stat().st_size:,} bytes", soft_wrap=True, markup=False)
