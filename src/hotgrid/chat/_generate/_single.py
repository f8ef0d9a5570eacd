"""`generate`: one sequence, token by token. The engine's results are compared with it."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor

from hotgrid.chat._model._folder import LanguageModel
from hotgrid.chat._model._gpt import GPT, Memory
from hotgrid.errors import ArgumentError

from ._burst import burst_for
from ._lean import LeanStep
from ._reply import Reply, length_limit
from ._sampling import Sampling, Settings, choose, likelihoods
from ._text import Piece

_CHUNK = 512


def generate(
    language: LanguageModel,
    tokens: Sequence[int],
    sampling: Sampling | None = None,
    *,
    burst: int | None = None,
    compiled: bool = False,
) -> Iterator[Piece]:
    """Continue a text, and yield the new text as it arises.

    Args:
        language: The model.
        tokens: The prompt; `render` makes one of a conversation.
        sampling: How to choose tokens and when to end.
        burst: How many tokens are computed before the host looks at them, by CUDA graphs
            where there is CUDA. 1 for none; by default 16 on CUDA, otherwise 1.
        compiled: Whether bursts are compiled; the first one takes a while.

    Yields:
        Pieces of the text; the last one says why it ended.

    Raises:
        ArgumentError: The prompt is empty, too long, or has what is not a token; or `burst`
            is below 1.
        UnstableError: The model's logits are not finite.

    Example:
        >>> tokens = language.encoding.encode("Once upon")  # doctest: +SKIP
        >>> for piece in generate(language, tokens):  # doctest: +SKIP
        ...     print(piece.text, end="", flush=True)
    """
    reply = Reply(language, tokens, sampling or Sampling(), length_limit(language.model))
    device = language.model.embed.weight.device
    count = (16 if device.type == "cuda" else 1) if burst is None else burst
    if count < 1:
        raise ArgumentError(f"`burst` must be at least 1, got {burst}")
    # The log probabilities of a burst are not kept.
    if count == 1 or reply.sampling.logprobs is not None:
        return _pieces(language.model, reply)
    return _burst_pieces(language.model, reply, count, compiled)


def _burst_pieces(model: GPT, reply: Reply, count: int, compiled: bool) -> Iterator[Piece]:
    device = model.embed.weight.device
    settings = Settings.of([reply.sampling], model.config.vocabulary, device)
    decoder = burst_for(
        model, len(reply.tokens) + reply.left, count, settings, compiled=compiled
    )
    decoder.begin(reply.tokens, settings)
    # On a GPU one burst is ahead, so that it never waits.
    ahead, left = (2 if device.type == "cuda" else 1), reply.left
    begun: deque[Callable[[], list[int]]] = deque()
    first = 0
    while reply.finish is None:
        while left > first and len(begun) < ahead:
            places = range(first, min(first + count, left))
            begun.append(decoder.run([reply.uniform(n - len(reply)) for n in places]))
            first = places.stop
        for token in begun.popleft()():
            if (piece := reply.add(token)) is not None:
                yield piece
            if reply.finish is not None:
                break


def _pieces(model: GPT, reply: Reply) -> Iterator[Piece]:
    sampling, device = reply.sampling, model.embed.weight.device
    settings = Settings.of([sampling], model.config.vocabulary, device)
    most = min(reply.prompt + sampling.max_tokens, length_limit(model))
    memory = model.memory(1, most)
    seen = None
    if settings.repeats:
        seen = torch.zeros(1, model.config.vocabulary, dtype=torch.bool, device=device)
        seen[0, reply.tokens] = True
    new, lean = reply.tokens, LeanStep.of(model)
    while reply.finish is None:
        if lean is not None and len(new) == 1:
            logits = lean(new[0], memory)
        else:
            logits = _logits(model, new, memory)
        uniforms = torch.tensor([reply.uniform()], dtype=torch.float64, device=device)
        chosen = choose(logits, settings, uniforms, seen)
        found = likelihoods(logits, chosen, [sampling])[0]
        token = int(chosen)
        if (piece := reply.add(token, found)) is not None:
            yield piece
        new = [token]
        if seen is not None:
            seen[0, token] = True


@torch.inference_mode()
def _logits(model: GPT, tokens: list[int], memory: Memory) -> Tensor:
    """Feed tokens in parts, and return the logits after the last."""
    device = model.embed.weight.device
    features = None
    for start in range(0, len(tokens), _CHUNK):
        part = torch.tensor([tokens[start : start + _CHUNK]], device=device)
        features = model.features(part, memory=memory)
    if features is None:
        raise AssertionError("a reply has at least one token")
    return model.head(features[:, -1])
