"""`hotgrid chat tokenizer`: a vocabulary from text."""

from pathlib import Path

from hotgrid.cli._terminal import Terminal

from ._options import Data, ReadOptions

_TEXT = ReadOptions()


def tokenizer(
    *data: Data,
    size: int = 8192,
    out: Path = Path("tokenizer.json"),
    most_bytes: int = 2_000_000_000,
    text: ReadOptions = _TEXT,
) -> None:
    """Train a vocabulary on text.

    Args:
        data: Files, folders and globs of text.
        size: How many tokens, special ones included; by default 8192.
        out: The file to write; by default tokenizer.json.
        most_bytes: Text beyond this is not read; by default 2,000,000,000.
        text: The choice of text.
    """
    from hotgrid.chat import train_vocabulary
    from hotgrid.tokens import save_huggingface

    made = train_vocabulary(text.data(data), size, most_bytes=most_bytes, name=out.stem)
    save_huggingface(made, out)
    console = Terminal(highlight=False)
    console.print(f"{made.n_vocab:,} tokens in {out}", soft_wrap=True, markup=False)
    if made.n_vocab < size:
        console.print("The text has too few different words for more.")
