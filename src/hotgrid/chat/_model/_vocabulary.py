"""The vocabulary of a chat: special tokens for the speakers, at its end."""

import re
from collections.abc import Sequence

from hotgrid.errors import ArgumentError
from hotgrid.tokens import Encoding

BOS, SYSTEM, USER, ASSISTANT, END = SPECIALS = (
    "<|bos|>",
    "<|system|>",
    "<|user|>",
    "<|assistant|>",
    "<|end|>",
)
# Vocabularies of other tools have their own token that begins a text, which models know.
_BEGINNINGS = ("<|begin_of_text|>", "<s>", BOS)
# Kernels are fastest where the vocabulary is a multiple of this.
_MULTIPLE = 64
_RESERVED = re.compile(r"<\|reserved_.*\|>")


def special_names(tokens: int) -> list[str]:
    """The special tokens of a vocabulary with `tokens` other tokens, and its padding."""
    spare = -(tokens + len(SPECIALS)) % _MULTIPLE
    return [*SPECIALS, *(f"<|reserved_{place}|>" for place in range(spare))]


def chat_encoding(encoding: Encoding, *, most: int | None = None) -> Encoding:
    """Return a vocabulary with the special tokens of a chat.

    One that has them is returned as it is. Reserved tokens get their names, where there are
    enough, as in `hotgrid_32k`. Otherwise they come after the others, and reserved ones pad
    the vocabulary to a multiple of 64.

    Args:
        encoding: The vocabulary.
        most: How many tokens a model has an embedding for.

    Raises:
        ArgumentError: `most` leaves no place for them.

    Example:
        >>> from hotgrid.tokens import get_encoding
        >>> chat = chat_encoding(get_encoding("hotgrid_32k"))
        >>> chat.n_vocab, chat.encode_single_token("<|bos|>"), chat.encode("<|end|>",
        ...     allowed_special="all")
        (32768, 32757, [32761])
    """
    numbers = {each: encoding.encode_single_token(each) for each in encoding.special_tokens_set}
    if not set(SPECIALS) - set(numbers):
        return encoding
    spare = sorted(
        (number, each) for each, number in numbers.items() if _RESERVED.fullmatch(each)
    )
    if len(spare) >= len(SPECIALS):
        for name, (number, old) in zip(SPECIALS, spare, strict=False):
            del numbers[old]
            numbers[name] = number
    else:
        first = encoding.n_vocab
        numbers |= {name: first + place for place, name in enumerate(special_names(first))}
    made = encoding.with_special_tokens(numbers, name=encoding.name)
    if most is not None and made.n_vocab > most:
        raise ArgumentError(
            f"the vocabulary {encoding.name!r} has no place for {', '.join(SPECIALS)}: with "
            f"them it has {made.n_vocab:,} tokens, and the model {most:,}"
        )
    return made


def beginning(encoding: Encoding) -> int:
    """Return the token that begins every text and conversation.

    Raises:
        ArgumentError: The vocabulary has none.

    Example:
        >>> from hotgrid.tokens import get_encoding
        >>> beginning(chat_encoding(get_encoding("hotgrid_32k")))
        32757
    """
    there = (name for name in _BEGINNINGS if name in encoding.special_tokens_set)
    name = next(there, None)
    if name is None:
        raise ArgumentError(
            f"the vocabulary {encoding.name!r} has no `{BOS}`; `hotgrid chat tokenizer` makes "
            "one that has"
        )
    return encoding.encode_single_token(name)


def token_bytes(encoding: Encoding, vocabulary: int) -> Sequence[int]:
    """How many bytes of text each token stands for; special ones for none."""
    sizes = [0] * vocabulary
    for each in encoding.token_byte_values():
        sizes[encoding.encode_single_token(each)] = len(each)
    return sizes
