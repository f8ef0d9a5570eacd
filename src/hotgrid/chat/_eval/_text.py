"""How well a model predicts text: bits per byte and perplexity."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from hotgrid.chat._model._folder import LanguageModel
from hotgrid.chat._model._gpt import GPT, IGNORED
from hotgrid.chat._model._vocabulary import beginning, token_bytes
from hotgrid.chat._training._loader import HeldOutRows, TextEncoder, held_out_rows
from hotgrid.chat._training._pretrain import TextData
from hotgrid.errors import ArgumentError, UnstableError


@dataclass(frozen=True)
class TextScore:
    """How well text was predicted.

    Attributes:
        bits_per_byte: The loss in bits for every byte; it does not depend on the vocabulary.
        perplexity: The exponential of the loss of a token.
        tokens: How many tokens were predicted.
        bytes: How many bytes they stand for.
    """

    bits_per_byte: float
    perplexity: float
    tokens: int
    bytes: int


def score_text(
    language: LanguageModel,
    data: TextData,
    *,
    context: int | None = None,
    batch: int = 8,
    most_tokens: int | None = None,
) -> TextScore:
    """Predict every token of text from those before it in its row.

    Args:
        language: The model.
        data: The text; if it holds some out, this part alone.
        context: Tokens of a row; by default those the model was trained with.
        batch: Rows computed at once.
        most_tokens: Text beyond this is not read.

    Raises:
        ArgumentError: There is no text, or a number is below 1.
    """
    if most_tokens is not None and most_tokens < 1:
        raise ArgumentError(f"`most_tokens` must be at least 1, got {most_tokens}")
    data.expect_text()
    context = context or language.model.config.context
    share = data.held_share
    encode = TextEncoder(
        language.encoding, hold_out=share, held=share > 0, threads=data.threads
    )
    most = 1 << 62 if most_tokens is None else max(1, most_tokens // context)
    rows = held_out_rows(
        data.shards(data.valid or data.paths),
        encode,
        language.encoding,
        context=context,
        most=most,
    )
    if not len(rows):
        raise ArgumentError(f"there is no text in `{data.paths[0]}` to predict")
    return score_rows(language, rows, batch=batch)


@torch.inference_mode()
def score_rows(language: LanguageModel, rows: Tensor, *, batch: int = 8) -> TextScore:
    """Predict the tokens of rows that count.

    Args:
        language: The model.
        rows: Tokens, and whether they count, of shape (rows, length, 2).
        batch: Rows computed at once.
    """
    _expect_batch(batch)
    model, encoding = language.model, language.encoding
    device = model.embed.weight.device
    bos = beginning(encoding)
    source = HeldOutRows(rows, bos, batch)
    sizes = torch.tensor(token_bytes(encoding, model.config.vocabulary), device=device)
    nats = torch.zeros((), dtype=torch.float64, device=device)
    tokens = size = 0
    for index in range(len(source)):
        part = source.batch(index)
        targets = part.targets.to(device)
        counted = targets != IGNORED
        nats += -_likelihoods(model, part.tokens.to(device), targets).double().sum()
        tokens += int(counted.sum())
        size += int((sizes[targets.clamp(min=0)] * counted).sum())
    loss = float(nats) / max(1, tokens)
    return TextScore(
        float(nats) / math.log(2) / max(1, size), math.exp(min(loss, 700.0)), tokens, size
    )


def _expect_batch(batch: int) -> None:
    if batch < 1:
        raise ArgumentError(f"`batch` must be at least 1, got {batch}")


def _likelihoods(model: GPT, tokens: Tensor, targets: Tensor) -> Tensor:
    """The log-likelihood of each target; 0 where it does not count.

    Raises:
        UnstableError: The model's logits are not finite.
    """
    logits = model(tokens).log_softmax(-1)
    found = logits.gather(-1, targets.clamp(min=0).unsqueeze(-1)).squeeze(-1)
    found = found.masked_fill(targets == IGNORED, 0.0)
    if found.isnan().any():
        raise UnstableError(
            "the model's logits are not finite; check its weights and its dtype"
        )
    return found


@torch.inference_mode()
def continuation_likelihoods(
    language: LanguageModel, pairs: list[tuple[list[int], list[int]]], *, batch: int = 16
) -> list[float]:
    """Return the log-likelihood of each continuation of a beginning, in nats.

    Args:
        language: The model.
        pairs: Tokens of beginnings, which are not empty, and of what follows. Of beginnings
            that are too long for the model, the end is used.
        batch: How many are computed at once.
    """
    _expect_batch(batch)
    model = language.model
    limit = model.config.context * model.config.stretch
    device = model.embed.weight.device
    found = [0.0] * len(pairs)
    # Pairs of similar length together: little is padded.
    order = sorted(range(len(pairs)), key=lambda at: sum(map(len, pairs[at])))
    for first in range(0, len(order), batch):
        some = order[first : first + batch]
        rows = [(pairs[at][0] + pairs[at][1])[-limit:] for at in some]
        width = max(map(len, rows)) - 1
        tokens = torch.zeros(len(some), width, dtype=torch.int64)
        targets = torch.full((len(some), width), IGNORED)
        for row, at, whole in zip(range(len(some)), some, rows, strict=True):
            count = min(len(pairs[at][1]), len(whole) - 1)
            tokens[row, : len(whole) - 1] = torch.tensor(whole[:-1])
            targets[row, len(whole) - 1 - count : len(whole) - 1] = torch.tensor(whole[-count:])
        sums = _likelihoods(model, tokens.to(device), targets.to(device)).double().sum(1)
        for at, value in zip(some, sums.tolist(), strict=True):
            found[at] = value
    return found
