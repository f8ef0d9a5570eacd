"""`hotgrid ingest inspect`: what is in a corpus, or in one document of it."""

from __future__ import annotations

from itertools import islice
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table

from hotgrid.cli._terminal import Terminal

from ._ingest import show_manifest

if TYPE_CHECKING:
    from hotgrid.blt import IngestedDocument

_ROWS = 20


def inspect(
    folder: Path, document: str | None = None, /, *, patches: int = 20, json: bool = False
) -> None:
    """Show what is in a corpus, or one document of it.

    Args:
        folder: The corpus.
        document: A document by name, by number, or by the first letters of its id.
        patches: How many patches of a document to show; by default 20.
        json: Print one JSON object instead.
    """
    from hotgrid.blt import Corpus

    corpus = Corpus(folder)
    console = Terminal(highlight=False)
    if document is not None:
        _show(console, _facts(corpus.find(document), patches), json)
        return
    show_manifest(console, folder, corpus.manifest, json)
    if json:
        return
    table = Table("document", "modality", "bytes", "patches", "name", box=None, pad_edge=False)
    for row in islice(corpus.rows(), _ROWS):
        sizes = (f"{row['bytes']:,}", f"{row['patches']:,}")
        table.add_row(row["id"][:8], row["modality"], *sizes, _plain(row["name"]))
    console.print()
    console.for_tables().print(table, markup=False)
    if len(corpus) > _ROWS:
        console.print(f"and {len(corpus) - _ROWS:,} more: see documents.jsonl", soft_wrap=True)


def _facts(document: IngestedDocument, count: int) -> dict[str, Any]:
    tensors = document.tensors
    rows, at = [], 0
    for number, length in enumerate(tensors["patch_lengths"][:count].tolist()):
        data = tensors["bytes"][at : at + length].tobytes()
        rows.append(
            {
                "start": at,
                "length": length,
                "entropy": round(float(tensors["patch_entropies"][number]), 4),
                "text": data[:64].decode("utf-8", "backslashreplace"),
            }
        )
        at += length
    shapes = {
        name: f"{each.dtype} {list(each.shape)}" for name, each in sorted(tensors.items())
    }
    return {**document.row, "tensors": shapes, "first_patches": rows}


def _show(console: Terminal, facts: dict[str, Any], json: bool) -> None:
    if json:
        console.out(dumps(facts, indent=2), highlight=False)
        return
    for name, value in facts.items():
        if name not in ("views", "tensors", "first_patches"):
            console.print(f"{name:13} {_plain(str(value))}", soft_wrap=True, markup=False)
    for view in facts["views"]:
        extra = dumps(view.get("extra", {}))
        console.print(
            f"view          {_plain(view['label'])} ({view['modality']}), bytes "
            f"{view['start']:,} to {view['end']:,} {extra}",
            soft_wrap=True,
            markup=False,
        )
    for name, shape in facts["tensors"].items():
        console.print(f"tensor        {name} {shape}", soft_wrap=True, markup=False)
    for row in facts["first_patches"]:
        console.print(
            f"{row['start']:>9,} {row['length']:>7,} {row['entropy']:7.3f}  "
            f"{dumps(row['text'], ensure_ascii=False)}",
            soft_wrap=True,
            markup=False,
        )


def _plain(text: str) -> str:
    """A name from an archive may hold anything, also what moves the cursor."""
    return "".join(each if each.isprintable() else "\ufffd" for each in text)
