"""`report.html`: one page about a corpus, without anything from outside."""

import base64
import html
import io
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import safe_open

from hotgrid._version import __version__
from hotgrid.files import whole_file

from ._histogram import EntropyTotals
from ._names import LIST, QUARANTINE, REPORT, document_file

_PICTURES, _SIDE = 24, 160
_FAULTS = 50
_STYLE = """
:root { color-scheme: light dark; --ink: #1c1c1a; --soft: #6b6a65; --line: #dddcd6;
  --page: #f7f7f5; --card: #fff; --bar: #2a78d6; }
@media (prefers-color-scheme: dark) { :root { --ink: #f0efeb; --soft: #a3a29b;
  --line: #33332f; --page: #161615; --card: #1f1f1d; --bar: #5a9df0; } }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 15px/1.5 system-ui, sans-serif; }
main { max-width: 1100px; margin: 0 auto; padding: 32px 24px 64px; }
section { background: var(--card); border: 1px solid var(--line); border-radius: 10px;
  padding: 14px 18px; margin-top: 16px; overflow-x: auto; }
h1 { margin: 0; font-size: 26px; } h2 { margin: 0 0 8px; font-size: 16px; }
p, td, th, figcaption { color: var(--soft); } td b { color: var(--ink); }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: 4px 24px 4px 0; border-top: 1px solid var(--line);
  overflow-wrap: anywhere; vertical-align: top; }
.number { text-align: right; } svg { width: 100%; height: auto; display: block; }
rect { fill: var(--bar); } text { fill: var(--soft); font-size: 11px; }
.pictures { display: flex; flex-wrap: wrap; gap: 12px; }
figure { margin: 0; width: 160px; } figcaption { font-size: 12px; overflow-wrap: anywhere; }
img { max-width: 160px; border-radius: 6px; display: block; }
"""


def write_report(folder: Path, manifest: Mapping[str, Any], totals: EntropyTotals) -> None:
    """Write the report of a corpus: counts, the entropy histogram, pictures, what is wrong."""
    with whole_file(folder / REPORT) as aside:
        aside.write_text("".join(_page(folder, manifest, totals)), encoding="utf-8")


def _page(folder: Path, manifest: Mapping[str, Any], totals: EntropyTotals) -> Iterator[str]:
    yield '<!doctype html><html lang="en"><meta charset="utf-8">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<title>Corpus report</title><style>{_STYLE}</style><main><h1>Corpus</h1>"
    patches = manifest["patches"] or 1
    yield (
        f"<p>{manifest['documents']:,} documents, {manifest['bytes']:,} bytes in "
        f"{manifest['patches']:,} patches of {manifest['bytes'] / patches:.2f} bytes; "
        f"{manifest['duplicates']:,} duplicates, {manifest['near_duplicates']:,} near "
        f"duplicates, {manifest['quarantined']:,} in quarantine.</p>"
    )
    rows = [
        [name, each["documents"], each["source_bytes"], each["bytes"], each["patches"]]
        for name, each in manifest["modalities"].items()
    ]
    head = ["modality", "documents", "bytes of files", "decoded bytes", "patches"]
    yield f"<section><h2>By modality</h2>{_table(head, rows)}</section>"
    yield f"<section><h2>Entropy of bytes, nats</h2>{_histogram(totals)}</section>"
    yield from _pictures(folder)
    yield from _faults(folder, manifest["quarantined"])
    settings = [[name, json.dumps(value)] for name, value in manifest["settings"].items()]
    yield f"<section><h2>Settings</h2>{_table(['name', 'value'], settings)}</section>"
    yield f"<p>Written by hotgrid {__version__}.</p></main></html>\n"


def _table(head: list[str], rows: list[list[Any]]) -> str:
    lines = "".join(f"<th>{html.escape(each)}</th>" for each in head)
    for row in rows:
        cells = "".join(
            f'<td class="number"><b>{each:,}</b></td>'
            if isinstance(each, int)
            else f"<td>{_shown(each)}</td>"
            for each in row
        )
        lines += f"<tr>{cells}</tr>"
    return f"<table><tr>{lines}</table>"


def _shown(text: str) -> str:
    """Text from a file, which may hold anything, in the page."""
    plain = "".join(each if each.isprintable() else "\ufffd" for each in text[:300])
    return html.escape(plain)


def _histogram(totals: EntropyTotals) -> str:
    edges, counts = totals.fine()
    step = 5
    joined = [sum(counts[at : at + step]) for at in range(0, len(counts), step)]
    most, wide = max(joined, default=0) or 1, 900 / max(1, len(joined))
    bars = ""
    for at, each in enumerate(joined):
        high = 190 * each / most
        bars += f'<rect x="{at * wide:.1f}" y="{200 - high:.1f}" width="{wide * 0.9:.1f}" '
        bars += f'height="{high:.1f}"><title>{edges[at * step]:.2f}: {each:,}</title></rect>'
    width = edges[1] * step
    marks = "".join(
        f'<text x="{nats / width * wide:.1f}" y="216">{nats}</text>'
        for nats in range(int(len(joined) * width) + 1)
    )
    found = totals.statistics() | totals.percentiles()
    line = ", ".join(f"{name} {found[name]:.2f}" for name in ("mean", "std", "p50", "p99"))
    return f'<svg viewBox="0 0 900 220" role="img">{bars}{marks}</svg><p>{line}</p>'


def _pictures(folder: Path) -> Iterator[str]:
    shown = 0
    with (folder / LIST).open(encoding="utf-8") as file:
        for row in map(json.loads, file):
            view = next((each for each in row["views"] if each["modality"] == "image"), None)
            if view is None:
                continue
            if not shown:
                yield '<section><h2>Pictures</h2><div class="pictures">'
            source = base64.b64encode(
                _thumbnail(folder / document_file(row["id"]), view)
            ).decode()
            yield (
                f'<figure><img alt="" src="data:image/png;base64,{source}">'
                f"<figcaption>{_shown(row['name'])}</figcaption></figure>"
            )
            shown += 1
            if shown == _PICTURES:
                break
    if shown:
        yield "</div></section>"


def image_of(data: NDArray[np.uint8], extra: Mapping[str, Any]) -> NDArray[np.uint8]:
    """An image of the shape (height, width, 3) from its patches."""
    side, width, height = extra["patch_size"], extra["width"], extra["height"]
    rows, columns = -(-height // side), -(-width // side)
    blocks = data.reshape(rows, columns, side, side, 3).transpose(0, 2, 1, 3, 4)
    return blocks.reshape(rows * side, columns * side, 3)[:height, :width]


def _thumbnail(path: Path, view: Mapping[str, Any]) -> bytes:
    from PIL import Image

    with safe_open(path, "np") as file:
        data = file.get_slice("bytes")[view["start"] : view["end"]]
    pixels = np.ascontiguousarray(image_of(data, view["extra"]))
    image = Image.fromarray(pixels)
    image.thumbnail((_SIDE, _SIDE))
    written = io.BytesIO()
    image.save(written, "PNG")
    return written.getvalue()


def _faults(folder: Path, count: int) -> Iterator[str]:
    if not count:
        return
    rows = []
    with (folder / QUARANTINE).open(encoding="utf-8") as file:
        for row in map(json.loads, file):
            rows.append([row["name"], row["reason"]])
            if len(rows) == _FAULTS:
                break
    more = f"<p>The first {len(rows)} of {count:,}; all are in quarantine.jsonl.</p>"
    yield f"<section><h2>Quarantine</h2>{_table(['name', 'reason'], rows)}{more}</section>"
