"""Requests of clients: their bodies, checked field by field."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from hotgrid.chat._generate._sampling import MOST_LOGPROBS, Sampling
from hotgrid.chat._template import ChatMessage
from hotgrid.errors import ArgumentError, near
from hotgrid.web import Check, list_of, number_in, one_of, optional, truth, whole_in

from ._problems import ApiError, wrong

MOST_CHOICES, MOST_STOPS, MOST_PROMPTS = 16, 4, 16
_INT64 = 2**63 - 1


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    raise ValueError("a text")


def _only(*allowed: Any) -> Check:
    """A check of a field that has no other value here."""

    def check(value: Any) -> Any:
        if value in allowed:
            return value
        names = " or ".join(json.dumps(each) for each in allowed)
        raise ValueError(f"{names}; no other value is supported")

    return check


def _stops(value: Any) -> tuple[str, ...]:
    given = [value] if isinstance(value, str) else value
    few = isinstance(given, list) and len(given) <= MOST_STOPS
    if few and all(isinstance(each, str) and each for each in given):
        return tuple(given)
    raise ValueError(f"a text or a list of at most {MOST_STOPS} texts that are not empty")


def _usage(value: Any) -> bool:
    if isinstance(value, dict) and not set(value) - {"include_usage", "include_obfuscation"}:
        return truth(value.get("include_usage", False))
    raise ValueError('an object such as {"include_usage": true}')


def _content(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        parts = [
            part.get("text") if isinstance(part, dict) and part.get("type") == "text" else None
            for part in value
        ]
        if all(isinstance(part, str) for part in parts):
            return "".join(map(str, parts))
    raise ValueError("a text, or parts of the type `text`")


def _message(value: Any) -> ChatMessage:
    if not isinstance(value, dict):
        raise ValueError("objects with `role` and `content`")
    role = "system" if value.get("role") == "developer" else value.get("role")
    try:
        return ChatMessage(role, _content(value.get("content")))  # type: ignore[arg-type]
    except (ArgumentError, TypeError) as problem:
        raise ValueError(f"messages: {problem}") from None
    except ValueError as problem:
        raise ValueError(f"messages whose content is {problem}") from None


def _prompts(value: Any) -> list[str | list[int]]:
    def tokens(given: Any) -> bool:
        return isinstance(given, list) and bool(given) and all(type(t) is int for t in given)

    given = [value] if isinstance(value, str) or tokens(value) else value
    few = isinstance(given, list) and 1 <= len(given) <= MOST_PROMPTS
    if few and all(isinstance(each, str) or tokens(each) for each in given):
        return given
    raise ValueError(f"a text, tokens, or a list of at most {MOST_PROMPTS} of them")


_SHARED: Mapping[str, Check] = MappingProxyType(
    {
        "model": _text,
        "temperature": optional(number_in(0, 2)),
        "top_p": optional(number_in(1e-6, 1)),
        "top_k": optional(whole_in(1, 1 << 20)),
        "repetition_penalty": optional(number_in(0.01, 100)),
        "seed": optional(whole_in(-_INT64, _INT64)),
        "max_tokens": optional(whole_in(1, 1 << 30)),
        "stop": optional(_stops, ()),
        "n": optional(whole_in(1, MOST_CHOICES), 1),
        "stream": optional(truth, False),
        "stream_options": optional(_usage, False),
        "frequency_penalty": optional(_only(0)),
        "presence_penalty": optional(_only(0)),
        "logit_bias": optional(_only({})),
        # About the request; the model does not see it.
        "user": optional(_text),
        "metadata": lambda value: None,
        "store": lambda value: None,
        "safety_identifier": lambda value: None,
        "prompt_cache_key": lambda value: None,
        "service_tier": lambda value: None,
    }
)
_CHAT: Mapping[str, Check] = MappingProxyType(
    {
        **_SHARED,
        "messages": list_of(_message, 1, 10_000),
        "max_completion_tokens": optional(whole_in(1, 1 << 30)),
        "logprobs": optional(truth, False),
        "top_logprobs": optional(whole_in(0, MOST_LOGPROBS)),
        "response_format": optional(_only({"type": "text"})),
        "tools": optional(_only([])),
        "tool_choice": optional(one_of("none", "auto")),
        "modalities": optional(_only(["text"])),
    }
)
_COMPLETION: Mapping[str, Check] = MappingProxyType(
    {
        **_SHARED,
        "prompt": _prompts,
        "logprobs": optional(whole_in(0, 5)),
        "echo": optional(_only(False)),
        "best_of": optional(_only(1)),
        "suffix": optional(_only("")),
    }
)


@dataclass(frozen=True)
class Asked:
    """One request of a client.

    Attributes:
        model: The name that it gave.
        messages: A conversation; empty for a completion.
        prompts: Texts or tokens to continue; empty for a conversation.
        sampling: How; `max_tokens` is that of the client or as many as there may be.
        choices: How many replies to each.
        stream: Whether pieces are sent as they arise.
        usage: Whether a stream ends with the counts of tokens.
    """

    model: str
    messages: tuple[ChatMessage, ...]
    prompts: tuple[str | list[int], ...]
    sampling: Sampling
    choices: int
    stream: bool
    usage: bool


def parse_chat(body: bytes, limit: int) -> Asked:
    """Return the request in a body for `/v1/chat/completions`.

    Raises:
        ApiError: It is not JSON, or a field is missing, unknown or wrong.
    """
    fields = _fields(body, _CHAT)
    shown = fields["top_logprobs"]
    if shown is not None and not fields["logprobs"]:
        raise wrong("top_logprobs", "`top_logprobs` needs `logprobs` to be true")
    fields["logprobs"] = (shown or 0) if fields["logprobs"] else None
    most, older = fields["max_completion_tokens"], fields["max_tokens"]
    if most is not None and older is not None:
        raise wrong("max_tokens", "give `max_completion_tokens` or `max_tokens`, not both")
    fields["max_tokens"] = most if most is not None else older
    return _asked(fields, limit, messages=tuple(fields["messages"]))


def parse_completion(body: bytes, limit: int) -> Asked:
    """Return the request in a body for `/v1/completions`.

    Raises:
        ApiError: It is not JSON, or a field is missing, unknown or wrong.
    """
    fields = _fields(body, _COMPLETION)
    if fields["max_tokens"] is None:
        # As OpenAI's: without a number, a completion is short.
        fields["max_tokens"] = 16
    return _asked(fields, limit, prompts=tuple(fields["prompt"]))


def _asked(fields: Mapping[str, Any], limit: int, **texts: Any) -> Asked:
    if fields["stream_options"] and not fields["stream"]:
        raise wrong("stream_options", "`stream_options` needs `stream` to be true")
    heat = fields["temperature"]
    sampling = Sampling(
        temperature=1.0 if heat is None else heat,
        top_k=fields["top_k"],
        top_p=fields["top_p"],
        seed=fields["seed"],
        repetition=fields["repetition_penalty"] or 1.0,
        max_tokens=min(fields["max_tokens"] or limit, limit),
        stop=fields["stop"],
        logprobs=fields["logprobs"],
    )
    return Asked(
        fields["model"],
        texts.get("messages", ()),
        texts.get("prompts", ()),
        sampling,
        fields["n"],
        fields["stream"],
        fields["stream_options"],
    )


def _fields(body: bytes, checks: Mapping[str, Check]) -> dict[str, Any]:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError) as problem:
        raise ApiError(400, f"the body is not JSON: {problem}") from None
    if not isinstance(found, dict):
        raise ApiError(400, "the body must be a JSON object")
    for name in found:
        if name not in checks:
            raise wrong(name, f"there is no field `{name[:80]}` here{near(name, checks)}")
    fields = {}
    for name, check in checks.items():
        try:
            fields[name] = check(found.get(name))
        except ValueError as problem:
            there = "must be" if name in found else "is missing; it must be"
            raise wrong(name, f"`{name}` {there} {problem}") from None
    return fields
