"""`hotgrid blt patches`: a text or a file with its patches in colours."""

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from rich.text import Text

from hotgrid.cli._terminal import Terminal
from hotgrid.cli._whole_number import WholeNumber
from hotgrid.errors import ArgumentError

if TYPE_CHECKING:
    from hotgrid.blt import ByteModel

_LIMIT = 4096
# Up to this many nats; harder ones have the last colour.
_COLOURS = ((0.5, "blue"), (1.25, "green"), (2.25, "yellow"))
_HARDEST = "red"


@dataclass(frozen=True)
class Patch:
    """One patch: where it begins, its bytes, and the entropies of its bytes in nats."""

    start: int
    data: bytes
    entropies: tuple[float, ...]

    @property
    def mean(self) -> float:
        """The mean entropy."""
        return sum(self.entropies) / len(self.entropies)


def patches(
    source: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None,
    /,
    *,
    text: str | None = None,
    segmenter: str = "threshold",
    threshold: float | None = None,
    size: float | None = None,
    most: WholeNumber = None,
    model: Path | None = None,
    limit: WholeNumber = None,
    json: bool = False,
) -> None:
    """Show the patches of a text or a file, in colours.

    Args:
        source: A file, `-` for standard input, or a text that does not look like a path.
        text: A text, whatever it looks like.
        segmenter: threshold, jump, threshold-and-jump, budget, space, static, tokens, or
            a language such as python or rust; by default threshold.
        threshold: Threshold in nats; by default the one that the model was calibrated with.
        size: The mean length of patches in bytes; by default 4.5, and 4 for static ones.
        most: Split patches that are longer than this.
        model: nano, the entropy model that comes with hotgrid, or a .safetensors file with an
            entropy model or an n-gram table; by default the table that comes with hotgrid.
        limit: Read no more bytes than this; by default 4096.
        json: Print one JSON object instead.
    """
    from hotgrid.blt import segmenter as make

    most_bytes = _LIMIT if limit is None else limit
    if most_bytes < 1:
        raise ArgumentError(f"`--limit` must be at least 1 byte, got {most_bytes}")
    if most is not None and most < 1:
        raise ArgumentError(f"`--most` must be at least 1 byte, got {most}")
    data, whole = _read(source, text, most_bytes)
    if not data:
        raise ArgumentError("there are no bytes to cut")
    name, chosen = _model(model)
    cut = make(segmenter, model=chosen, threshold=threshold, size=size, most=most)
    entropies = chosen.entropies(data).tolist()
    found: list[Patch] = []
    for patch in cut.patches(data):
        at = found[-1].start + len(found[-1].data) if found else 0
        found.append(Patch(at, patch, tuple(entropies[at : at + len(patch)])))
    used = getattr(getattr(cut, "segmenter", cut), "threshold", None)
    facts = {"model": name, "segmenter": segmenter, "threshold": used, "bytes": len(data)}
    facts |= {"patches": len(found), "mean_length": len(data) / len(found)}
    facts |= {"mean_entropy": sum(entropies) / len(entropies)}
    _show(found, facts, whole=whole, json=json)


def _read(source: str | None, text: str | None, most: int) -> tuple[bytes, bool]:
    """The first bytes, and whether there are no more."""
    if (source is None) == (text is None):
        raise ArgumentError("give a file, `-` for standard input, or --text TEXT; one of them")
    if source is None or text is not None:
        data = str(text).encode("utf-8", "surrogateescape")
    elif source == "-":
        data = sys.stdin.buffer.read(most + 1)
    elif _is_file(source):
        with Path(source).open("rb") as file:
            data = file.read(most + 1)
    elif _looks_like_a_path(source):
        raise ArgumentError(f"there is no file `{source}`; for a text use --text")
    else:
        data = source.encode("utf-8", "surrogateescape")
    return data[:most], len(data) <= most


def _looks_like_a_path(source: str) -> bool:
    """Whether it has no space, and a slash or an ending of up to five letters or digits."""
    return re.fullmatch(r"(?=.*/|.+\.\w{1,5}$)[^\s]+", source) is not None


def _is_file(source: str) -> bool:
    try:
        return Path(source).is_file()
    except (OSError, ValueError):  # too long for a name, or with a zero
        return False


def _model(path: Path | None) -> tuple[str, "ByteModel"]:
    from hotgrid.blt import load_entropy_model, load_ngram_table
    from hotgrid.blt._entropy._files import model_file
    from hotgrid.blt._entropy._ngram_table import is_ngram_table

    if path is None:
        return "n-gram table", load_ngram_table()
    if is_ngram_table(model_file(path)):
        return str(path), load_ngram_table(path)
    return str(path), load_entropy_model(path)


def _show(found: list[Patch], facts: dict[str, object], *, whole: bool, json: bool) -> None:
    console = Terminal(highlight=False)
    if json:
        rows = [
            {
                "start": each.start,
                "length": len(each.data),
                "text": each.data.decode("utf-8", "replace"),
                **({} if _is_utf8(each.data) else {"hex": each.data.hex()}),
                "entropies": [round(value, 4) for value in each.entropies],
            }
            for each in found
        ]
        console.out(dumps({**facts, "whole": whole, "rows": rows}, indent=2), highlight=False)
        return
    if not console.is_terminal or console.no_color:
        for each in found:
            text = _literal(each.data)
            sys.stdout.write(
                f"{each.start}\t{len(each.data)}\t{each.entropies[0]:.2f}\t{each.mean:.2f}"
                f"\t{text}\n"
            )
        return
    shown = Text()
    for number, each in enumerate(found):
        if number:
            shown.append("│", "dim")
        for at, text in _visible(each.data):
            shown.append(text, _colour(each.entropies[at]))
    console.print(shown, soft_wrap=True)
    threshold = facts["threshold"]
    rule = facts["segmenter"] if threshold is None else f"{facts['segmenter']} {threshold:.3f}"
    rest = "" if whole else "; the rest was left out, see `--limit`"
    console.print(
        f"{facts['bytes']:,} bytes in {facts['patches']:,} patches of "
        f"{facts['mean_length']:.2f} bytes; {facts['mean_entropy']:.2f} nats a byte; {rule}; "
        f"{facts['model']}{rest}",
        style="dim",
        markup=False,
        soft_wrap=True,
    )


def _colour(entropy: float) -> str:
    return next((colour for limit, colour in _COLOURS if entropy <= limit), _HARDEST)


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _literal(data: bytes) -> str:
    """Text in quotes as in JSON; bytes that are not text as in Python: b'...'."""
    return dumps(data.decode(), ensure_ascii=False) if _is_utf8(data) else repr(data)


def _visible(data: bytes) -> Iterator[tuple[int, str]]:
    """Where each character of a patch begins, and what to show for it.

    Ends of lines are marked; other controls, and bytes that are not a character, are escaped.
    """
    at = 0
    for each in data.decode("utf-8", "surrogateescape"):
        if each.isprintable():
            yield at, each
        elif each == "\n":
            yield at, "⏎\n"
        else:
            yield at, repr(each.encode("utf-8", "surrogateescape"))[2:-1]
        at += len(each.encode("utf-8", "surrogateescape"))
