"""GPT-2's letters for bytes: a printable character for each of the 256.

Files that hold tokens as text (`vocab.bpe`, `tokenizer.json`) write every byte as one
character. Bytes that Latin-1 prints are themselves; the others, in order, are the
characters from U+0100 on.
"""

from functools import cache


@cache
def letters() -> tuple[str, ...]:
    """The character of each byte."""
    printed = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = iter(range(0x100, 0x200))
    return tuple(chr(byte if byte in printed else next(others)) for byte in range(256))


@cache
def _bytes() -> dict[str, int]:
    return {letter: byte for byte, letter in enumerate(letters())}


def to_letters(token: bytes) -> str:
    """A token as text."""
    table = letters()
    return "".join(table[byte] for byte in token)


def to_bytes(text: str) -> bytes:
    """A token back from text.

    Raises:
        KeyError: A character encodes no byte.
    """
    table = _bytes()
    return bytes([table[letter] for letter in text])
