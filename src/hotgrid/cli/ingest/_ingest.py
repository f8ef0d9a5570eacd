"""`hotgrid ingest PATHS`: converts files into a corpus."""

from json import dumps
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter
from rich.table import Table

from hotgrid.cli._terminal import Terminal
from hotgrid.cli._whole_number import WholeNumber
from hotgrid.errors import ArgumentError

from ._sizes import Size

_MOST_REASONS = 10


def ingest(
    *paths: Annotated[str, Parameter(allow_leading_hyphen=True)],
    out: Annotated[Path | None, Parameter(name=("--out", "-o", "--output-dir"))] = None,
    text: Annotated[tuple[str, ...], Parameter(name=("--text", "-t"))] = (),
    segmenter: str = "threshold",
    threshold: Annotated[float | None, Parameter(name=("--threshold", "-r"))] = None,
    size: float | None = None,
    most: WholeNumber = None,
    model: Annotated[Path | None, Parameter(name=("--model", "-m", "--model-path"))] = None,
    device: str = "cpu",
    compile: bool = False,
    entropies: str = "float32",
    media: str = "pieces",
    pdf: Annotated[str, Parameter(name=("--pdf", "--pdf-mode"))] = "text",
    columns: Annotated[tuple[str, ...], Parameter(name="--column")] = (),
    include: tuple[str, ...] = (),
    exclude: tuple[str, ...] = (),
    limit: WholeNumber = None,
    keep_duplicates: bool = False,
    near: float | None = None,
    shards: Annotated[WholeNumber, Parameter(name=("--shards", "--num-shards"))] = None,
    leaves: str = "pieces",
    document_bytes: Size = None,
    file_bytes: Size = None,
    decoded_bytes: Size = None,
    archive_bytes: Size = None,
    workers: WholeNumber = None,
    timeout: float = 300.0,
    ray: bool = False,
    resume: bool = False,
    dry_run: bool = False,
    json: bool = False,
) -> int | None:
    """Convert files of any kind into a corpus of byte patches.

    Args:
        paths: Files, folders, patterns, - for standard input, or hf://datasets/OWNER/NAME.
        out: The folder of the corpus; an earlier one in it is moved to earlier-1 there.
        text: A text to take as a document; repeatable.
        segmenter: threshold, jump, threshold-and-jump, budget, space, static, tokens, or
            a language such as python or rust; by default threshold.
        threshold: Threshold in nats; by default the one that the model was calibrated with.
        size: The mean length of patches in bytes; by default 4.5, and 4 for static ones.
        most: Split patches that are longer than this.
        model: nano, the entropy model that comes with hotgrid, or a .safetensors file with an
            entropy model or an n-gram table; by default the table that comes with hotgrid.
        device: Where an entropy model runs; by default cpu.
        compile: Compile an entropy model: takes about ten seconds, pays off for large inputs.
        entropies: How the entropy of each byte is kept: float32 (by default), float16 or none,
            for a smaller corpus. Patches always keep their mean.
        media: Patches of images, audio and video: pieces (of 16x16 pixels or 160 samples,
            by default), or bytes, cut by the segmenter.
        pdf: Which views of a PDF to take: raw, text, image, or multiview for all; by
            default text.
        columns: A column of rows to take; repeatable. By default all with text or media.
        include: A pattern of names to take from folders and archives, such as "*.txt" or
            "in/drafts/*" in the folder in; repeatable.
        exclude: A pattern of names to leave out; repeatable.
        limit: Stop after this many documents.
        keep_duplicates: Keep documents with equal bytes.
        near: Leave out documents this similar to an earlier one, from 0 to 1, such as 0.8.
        shards: Pack documents into this many files; by default each has its own.
        leaves: Leaves of the sidecar: pieces (by default) or patches.
        document_bytes: Longer texts are cut into documents of this size; by default 1MiB.
        file_bytes: The largest file that is read as a whole; by default 64MiB.
        decoded_bytes: The most that a document may decode to; by default 64MiB.
        archive_bytes: The most that an archive may unpack to; by default 64GiB.
        workers: Processes; 0 works in this one. By default 0 for up to 16 MiB, else the
            number of cores.
        timeout: Seconds that a document may take in a worker process; by default 300.
        ray: Work on the machines of a Ray cluster instead; they see the same files and DIR.
        resume: Resume the corpus in DIR.
        dry_run: Count documents and bytes by modality, and write nothing.
        json: Print one JSON object instead.
    """
    for path in paths:
        if path.startswith("-") and path != "-":
            raise ArgumentError(
                f"there is no option `{path}`; `hotgrid ingest --help` lists them, and a file "
                f"of this name is `./{path}`"
            )
    from hotgrid.blt import IngestSettings, count_input, ingest as run
    from hotgrid.cluster import follow_slurm, is_primary

    limits = {
        "document_bytes": document_bytes,
        "file_bytes": file_bytes,
        "decoded_bytes": decoded_bytes,
        "archive_bytes": archive_bytes,
    }
    settings = IngestSettings(
        segmenter=segmenter,
        threshold=threshold,
        size=size,
        most=most,
        model=None if model is None else str(model),
        device=device,
        compiled=compile,
        entropies=entropies,
        media=media,
        pdf=pdf.removesuffix("_only"),
        columns=columns,
        include=include,
        exclude=exclude,
        limit=limit,
        duplicates=keep_duplicates,
        near=near,
        shards=shards,
        leaves=leaves,
        **{name: value for name, value in limits.items() if value is not None},
    )
    console = Terminal(highlight=False)
    if dry_run:
        follow_slurm()
        if not is_primary():
            return None
        counts = count_input(paths, settings, texts=text, out=out)
        _show_counts(console, {name: dict(each) for name, each in counts.items()}, json)
        return None
    if out is None:
        raise ArgumentError("say where the corpus goes: --out DIR, or --dry-run to only count")
    done = run(
        paths,
        out,
        settings,
        texts=text,
        resume=resume,
        workers=workers,
        timeout=timeout,
        ray=ray,
    )
    if not is_primary():
        return None
    if not done.finished:
        console.print("stopped by SIGTERM; continue with the same command and --resume")
        return None
    show_manifest(console, out, done.manifest, json)
    return None


def _show_counts(console: Terminal, counts: dict[str, dict[str, int]], json: bool) -> None:
    if json:
        console.out(dumps(counts, indent=2), highlight=False)
        return
    table = Table("modality", "documents", "bytes", box=None, pad_edge=False)
    for name, each in sorted(counts.items()):
        table.add_row(name, f"{each['documents']:,}", f"{each.get('bytes', 0):,}")
    console.for_tables().print(table)


def _counted(count: int, one: str, many: str) -> str:
    return f"{count:,} {one if count == 1 else many}"


def show_manifest(
    console: Terminal, folder: Path, manifest: dict[str, Any], json: bool
) -> None:
    """Show the contents of a corpus."""
    if json:
        console.out(dumps(manifest, indent=2), highlight=False)
        return
    patches = manifest["patches"]
    mean = manifest["bytes"] / patches if patches else 0.0
    sizes = (_counted(patches, "patch", "patches"), f"{mean:.2f} bytes")
    console.print(
        f"{_counted(manifest['documents'], 'document', 'documents')}, "
        f"{_counted(manifest['bytes'], 'byte', 'bytes')} in {' of '.join(sizes)}, in {folder}",
        soft_wrap=True,
        markup=False,
    )
    table = Table("modality", "documents", "bytes", "patches", box=None, pad_edge=False)
    for name, each in manifest["modalities"].items():
        table.add_row(name, *(f"{each[key]:,}" for key in ("documents", "bytes", "patches")))
    console.for_tables().print(table)
    if manifest["duplicates"] or manifest["near_duplicates"]:
        console.print(
            f"left out {_counted(manifest['duplicates'], 'duplicate', 'duplicates')} and "
            f"{_counted(manifest['near_duplicates'], 'near duplicate', 'near duplicates')}: "
            "see duplicates.jsonl",
            soft_wrap=True,
        )
    if manifest["quarantined"]:
        console.print(
            f"{manifest['quarantined']:,} could not be read: see quarantine.jsonl",
            soft_wrap=True,
        )
        for reason, count in list(manifest["reasons"].items())[:_MOST_REASONS]:
            console.print(f"  {count:,} x {reason}", soft_wrap=True, markup=False)
