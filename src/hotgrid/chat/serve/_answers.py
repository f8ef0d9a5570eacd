"""Answers of the API: whole ones, and chunks of streams."""

import codecs
import json
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from hotgrid._version import __version__
from hotgrid.chat._generate._sampling import Likelihood
from hotgrid.chat._generate._text import Piece
from hotgrid.tokens import Encoding


def event(value: Any) -> bytes:
    """Return an event of a stream."""
    text = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
    return f"data: {text}\n\n".encode()


@dataclass
class Counts:
    """How many tokens a request has used."""

    prompt: int
    reply: int = 0

    def usage(self) -> dict[str, int]:
        """Return them as OpenAI names them."""
        return {
            "prompt_tokens": self.prompt,
            "completion_tokens": self.reply,
            "total_tokens": self.prompt + self.reply,
        }


@dataclass
class Answers:
    """The answers to one request.

    Args:
        model: The name of the model.
        encoding: Its vocabulary, for log probabilities.
        chat: Whether it is a conversation, not a completion.
        counts: The numbers of tokens.
        usage: Whether a stream tells the counts.
    """

    model: str
    encoding: Encoding
    chat: bool
    counts: Counts
    usage: bool = False
    # Not from the system: a system call would release the GIL to the engine's thread.
    _id: str = field(default_factory=lambda: f"{random.getrandbits(128):032x}")
    _created: int = field(default_factory=lambda: int(time.time()))
    # What was sent of each completion, for the offsets of its log probabilities.
    _sent: "dict[int, _Sent]" = field(default_factory=dict)

    def whole(self, pieces: Sequence[Piece]) -> dict[str, Any]:
        """Return the answer with all choices."""
        choices = []
        for index, piece in enumerate(pieces):
            said = (
                {"message": {"role": "assistant", "content": piece.text, "refusal": None}}
                if self.chat
                else {"text": piece.text}
            )
            choices.append(self._choice(index, piece, said))
        kind = "chat.completion" if self.chat else "text_completion"
        return {**self._head(kind), "choices": choices, "usage": self.counts.usage()}

    def opening(self, index: int) -> dict[str, Any]:
        """Return the first chunk of a choice in a conversation."""
        said = {"delta": {"role": "assistant", "content": ""}}
        return self._chunk([self._choice(index, Piece(""), said)])

    def part(self, index: int, piece: Piece) -> dict[str, Any]:
        """Return a chunk with a piece of a choice."""
        delta = {"content": piece.text} if piece.text else {}
        said = {"delta": delta} if self.chat else {"text": piece.text}
        return self._chunk([self._choice(index, piece, said)])

    def closing(self) -> dict[str, Any]:
        """Return the last chunk of a stream that tells its usage."""
        return {**self._chunk([]), "usage": self.counts.usage()}

    def _choice(self, index: int, piece: Piece, said: dict[str, Any]) -> dict[str, Any]:
        logs = self._logprobs(index, piece) if piece.likelihoods else None
        # A reply that the server had to cut is one that got too long.
        finish = "length" if piece.finish == "cancelled" else piece.finish
        return {"index": index, **said, "logprobs": logs, "finish_reason": finish}

    def _chunk(self, choices: list[dict[str, Any]]) -> dict[str, Any]:
        kind = "chat.completion.chunk" if self.chat else "text_completion"
        more = {"usage": None} if self.usage else {}
        return {**self._head(kind), "choices": choices, **more}

    def _head(self, kind: str) -> dict[str, Any]:
        return {
            "id": f"{'chatcmpl' if self.chat else 'cmpl'}-{self._id}",
            "object": kind,
            "created": self._created,
            "model": self.model,
            "system_fingerprint": f"hotgrid-{__version__}",
        }

    def _logprobs(self, index: int, piece: Piece) -> dict[str, Any]:
        if self.chat:
            return {
                "content": [self._said(each) for each in piece.likelihoods],
                "refusal": None,
            }
        sent = self._sent.setdefault(index, _Sent())
        return {
            "tokens": [self._name(each.token) for each in piece.likelihoods],
            "token_logprobs": [each.logprob for each in piece.likelihoods],
            "top_logprobs": [
                {self._name(token): log for token, log in each.top}
                for each in piece.likelihoods
            ],
            "text_offset": [sent.add(self._bytes(each.token)) for each in piece.likelihoods],
        }

    def _said(self, likelihood: Likelihood) -> dict[str, Any]:
        top = [{**self._token(token), "logprob": log} for token, log in likelihood.top]
        return {
            **self._token(likelihood.token),
            "logprob": likelihood.logprob,
            "top_logprobs": top,
        }

    def _name(self, token: int) -> str:
        """The text of a token, or its bytes where these are not whole characters."""
        data = self._bytes(token)
        try:
            return data.decode()
        except UnicodeDecodeError:
            return "bytes:" + "".join(f"\\x{byte:02x}" for byte in data)

    def _bytes(self, token: int) -> bytes:
        try:
            return self.encoding.decode_bytes([token])
        except KeyError:
            return b""

    def _token(self, token: int) -> dict[str, Any]:
        data = self._bytes(token)
        return {"token": data.decode(errors="replace"), "bytes": list(data)}


class _Sent:
    """How many characters were sent, however they are cut into tokens."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._characters = 0

    def add(self, data: bytes) -> int:
        """Add the bytes of a token, and return how many characters are before it."""
        before = self._characters
        self._characters += len(self._decoder.decode(data))
        return before
