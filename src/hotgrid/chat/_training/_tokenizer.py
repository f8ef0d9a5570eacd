"""A vocabulary for chats: learned from text, or found by its name or file."""

from collections.abc import Iterator
from pathlib import Path

from hotgrid.chat._model._folder import TOKENIZER
from hotgrid.chat._model._vocabulary import SPECIALS, chat_encoding
from hotgrid.errors import ArgumentError, near
from hotgrid.tokens import (
    Encoding,
    get_encoding,
    list_encoding_names,
    load_huggingface,
    train,
)

from ._loader import passages
from ._pretrain import TextData


def train_vocabulary(
    data: TextData, size: int, *, most_bytes: int = 2_000_000_000, name: str = "chat"
) -> Encoding:
    """Learn a vocabulary from text.

    Args:
        data: The text.
        size: How many tokens, special ones included; rounded up to a multiple of 64.
        most_bytes: Text beyond this is not read.
        name: What to call it.

    Returns:
        The vocabulary with the special tokens of a chat. It is smaller where the text has
        too few different words.

    Raises:
        ArgumentError: The size is too small, or there is no text.
    """
    least = 256 + len(SPECIALS)
    if size < least:
        raise ArgumentError(f"`size` {size}: choose {least} or more, as there are 256 bytes")
    data.expect_text()
    size = -(-size // 64) * 64
    plain = train(
        _texts(data, most_bytes),
        size - len(SPECIALS),
        pattern="o200k",
        special_tokens=(),
        name=name,
    )
    return chat_encoding(plain)


def _texts(data: TextData, most_bytes: int) -> Iterator[str]:
    left = most_bytes
    for document in data.shards(data.paths).read(epochs=1):
        for each in passages(document.text):
            yield each
            left -= len(each.encode(errors="replace"))
            if left <= 0:
                return


def find_vocabulary(name: str | Path | None = None) -> Encoding:
    """Return a vocabulary by its name, its file or a folder that has it.

    Args:
        name: A `tokenizer.json`, a model folder, or the name of an encoding of
            `hotgrid.tokens`; None is hotgrid's own.

    Raises:
        ArgumentError: There is no such file and no encoding of that name.

    Example:
        >>> find_vocabulary().n_vocab
        32768
    """
    if name is None:
        return chat_encoding(get_encoding())
    path = Path(name)
    if path.is_dir():
        path /= TOKENIZER
    if path.is_file():
        return chat_encoding(load_huggingface(path, name=path.stem))
    names = list_encoding_names()
    if str(name) in names:
        return chat_encoding(get_encoding(str(name)))
    raise ArgumentError(
        f"`{name}` is neither a tokenizer.json nor an encoding{near(str(name), names)}; "
        "`hotgrid chat tokenizer DATA --size 8192 --out tokenizer.json` makes one"
    )
