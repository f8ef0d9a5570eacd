"""`hotgrid chat compress`: a smaller model, and what that costs."""

from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from rich.table import Table

from hotgrid.cli._terminal import Terminal

if TYPE_CHECKING:
    from hotgrid.chat import ModelMeasure


def compress(
    model: Path,
    *,
    target: str = "int8",
    out: Path = Path("out/small"),
    text: Annotated[tuple[str, ...], Parameter(consume_multiple=True)] = (),
    column: str = "text",
    most_tokens: int = 65_536,
    force: bool = False,
    json: bool = False,
) -> None:
    """Make a model smaller, and measure what that costs.

    Args:
        model: A model folder, a run, or a folder in the layout of Llama.
        target: int8, int4, pq or rows; bits such as 4bit, a size such as 8MB, or an error
            such as "error<=0.1"; by default int8.
        out: The model folder to write; by default out/small.
        text: Text to calibrate and measure with; by default Python's documentation.
        column: Key or column that holds the text; by default text.
        most_tokens: The most tokens to measure with; by default 65,536.
        force: Accept a larger error than usual.
        json: Print one JSON object instead of a table.
    """
    from tempfile import TemporaryDirectory

    from hotgrid.chat import compress_model, load_model, measure, save_model, text_rows

    language = load_model(model)
    rows = text_rows(language, text, column=column, most_tokens=most_tokens)
    half = max(1, len(rows) // 2)
    # Calibration and measurement use different text, where there is enough.
    small = compress_model(language, target, rows=rows[:half], force=force)
    save_model(out, small)
    with TemporaryDirectory() as folder:
        before = Path(folder) / "model"
        save_model(before, language)
        found = {"before": measure(language, rows[-half:], before)}
    found["after"] = measure(load_model(out), rows[-half:], out)
    console = Terminal(highlight=False)
    if json:
        plain = {name: _plain(each) for name, each in found.items()}
        console.out(dumps(plain, indent=2), highlight=False)
        return
    table = Table("", "MB", "bits per byte", "tokens/s", box=None, pad_edge=False)
    for name, each in found.items():
        size, bits, speed = _plain(each).values()
        table.add_row(name, f"{size / 1e6:,.2f}", f"{bits:.4f}", f"{speed:,.1f}")
    console.for_tables().print(table)
    console.print(f"model: {out}", soft_wrap=True, markup=False)


def _plain(found: "ModelMeasure") -> dict[str, float]:
    return {
        "bytes": found.bytes,
        "bits_per_byte": found.text.bits_per_byte,
        "tokens_per_second": found.tokens_per_second,
    }
