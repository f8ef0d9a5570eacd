"""Conversations as tokens: one rendering for tuning, talking and serving."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from hotgrid.chat._model._vocabulary import beginning
from hotgrid.errors import ArgumentError, near
from hotgrid.tokens import Encoding

Role = Literal["system", "user", "assistant"]
END = "<|end|>"
ROLES: tuple[Role, ...] = get_args(Role)


@dataclass(frozen=True)
class ChatMessage:
    """One message of a conversation.

    Args:
        role: `system`, `user` or `assistant`.
        content: Its text.

    Raises:
        ArgumentError: There is no such role.
    """

    role: Role
    content: str

    def __post_init__(self) -> None:
        if self.role not in ROLES:
            raise ArgumentError(
                f"there is no role {self.role!r}{near(str(self.role), ROLES)}; "
                f"choose one of {', '.join(ROLES)}"
            )


def special(encoding: Encoding, name: str) -> int:
    """Return the number of a special token of chats.

    Raises:
        ArgumentError: The vocabulary has none of that name.
    """
    if name not in encoding.special_tokens_set:
        raise ArgumentError(
            f"the vocabulary {encoding.name!r} has no special token `{name}`, which "
            "conversations need; use one that `hotgrid chat tokenizer` made"
        )
    return encoding.encode_single_token(name)


def render(
    encoding: Encoding, messages: Sequence[ChatMessage], *, reply: bool
) -> tuple[list[int], list[bool]]:
    """Return the tokens of a conversation, and which of them count in the loss.

    What begins a text (`<|bos|>`, or `<|begin_of_text|>` or `<s>` where the vocabulary has
    one), then each message as its role's token, its text and `<|end|>`. Texts are never read
    for special tokens, so nothing that is typed becomes a role.

    Args:
        encoding: A vocabulary with the special tokens of chats.
        messages: The conversation; a system message comes first or not at all.
        reply: Whether to end with `<|assistant|>`, for the model to continue.

    Returns:
        The tokens, and for each whether it counts: those of replies and their `<|end|>`.

    Raises:
        ArgumentError: The system message is not the first, a reply is wanted and there is
            nothing to reply to, or the vocabulary does not have the special tokens.

    Example:
        >>> ranks = {bytes([byte]): byte for byte in range(256)}
        >>> names = ("<|bos|>", "<|system|>", "<|user|>", "<|assistant|>", "<|end|>")
        >>> enc = Encoding(
        ...     "bytes",
        ...     pat_str="gpt2",
        ...     mergeable_ranks=ranks,
        ...     special_tokens={name: 256 + place for place, name in enumerate(names)},
        ... )
        >>> tokens, counts = render(enc, [ChatMessage("user", "Hi")], reply=True)
        >>> enc.decode(tokens)
        '<|bos|><|user|>Hi<|end|><|assistant|>'
    """
    if any(message.role == "system" for message in messages[1:]):
        raise ArgumentError("a system message must be the first of a conversation")
    if reply and (not messages or messages[-1].role != "user"):
        last = f"the last message is of the {messages[-1].role}" if messages else "it is empty"
        raise ArgumentError(f"a conversation to reply to must end with a user message; {last}")
    end = special(encoding, END)
    tokens, counts = [beginning(encoding)], [False]
    for message in messages:
        text = encoding.encode_ordinary(message.content)
        tokens += [special(encoding, f"<|{message.role}|>"), *text, end]
        counts += [False, *([message.role == "assistant"] * (len(text) + 1))]
    if reply:
        tokens.append(special(encoding, "<|assistant|>"))
        counts.append(False)
    return tokens, counts
