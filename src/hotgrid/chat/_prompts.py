"""From what a person wrote to the tokens that a model continues."""

from collections.abc import Sequence

from ._model._folder import LanguageModel
from ._model._vocabulary import beginning
from ._template import ChatMessage, render


def is_tuned(language: LanguageModel) -> bool:
    """Return whether a model has learned to answer; others continue a text."""
    return bool(language.card.get("tuned"))


def completion_tokens(language: LanguageModel, text: str) -> list[int]:
    """Return the tokens of a text that is to be continued, from its beginning."""
    encoding = language.encoding
    return [beginning(encoding), *encoding.encode_ordinary(text)]


def conversation_tokens(language: LanguageModel, messages: Sequence[ChatMessage]) -> list[int]:
    """Return the tokens of a conversation that is to be replied to.

    A model that is not tuned knows no roles: it continues the texts of all messages, those
    of the user on lines of their own.

    Raises:
        ArgumentError: The last message is not the user's, or a system message is not first.
    """
    tokens, _ = render(language.encoding, messages, reply=True)
    if is_tuned(language):
        return tokens
    text = ""
    for message in messages:
        if text and message.role != "assistant" and not text.endswith("\n"):
            text += "\n"
        text += message.content
    return completion_tokens(language, text)
