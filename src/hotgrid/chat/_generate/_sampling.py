"""How the next token is chosen, for many sequences at once.

Randomness is one number for each token of a request, computed from its seed and the number of
the token. So what a request gets does not depend on what else is in the batch.
"""

import math
import secrets
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from hotgrid.contracts import checked
from hotgrid.errors import ArgumentError

_WORD = (1 << 64) - 1
# SplitMix64.
_STRIDE = 0x9E3779B97F4A7C15
_MIXES = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))
MOST_LOGPROBS = 20


@dataclass(frozen=True)
class Sampling:
    """How to continue a text.

    Args:
        temperature: Logits are divided by it; 0 always takes the likeliest token.
        top_k: Sample from the k most likely tokens only; None for all.
        top_p: Only the likeliest tokens that together have this probability; None for all.
        repetition: Logits of tokens that the sequence already has are divided by it where
            positive and multiplied where negative; 1 changes nothing.
        seed: The random seed; None for a new one each time.
        max_tokens: The most new tokens.
        stop: Texts before which the reply ends.
        logprobs: How many of the likeliest tokens to report with their log probabilities,
            beside that of the chosen one; None for no report.

    Raises:
        ArgumentError: A number is out of its range.

    Example:
        >>> Sampling(temperature=0).greedy
        True
    """

    temperature: float = 0.8
    top_k: int | None = None
    top_p: float | None = None
    repetition: float = 1.0
    seed: int | None = None
    max_tokens: int = 256
    stop: tuple[str, ...] = ()
    logprobs: int | None = None

    def __post_init__(self) -> None:
        rules = (
            ("temperature", 0 <= self.temperature <= 100, "from 0 to 100"),
            ("top_k", self.top_k is None or self.top_k >= 1, "at least 1, or None"),
            ("top_p", self.top_p is None or 0 < self.top_p <= 1, "above 0 and at most 1"),
            ("repetition", 0.01 <= self.repetition <= 100, "from 0.01 to 100"),
            ("max_tokens", self.max_tokens >= 1, "at least 1"),
            ("stop", all(self.stop), "texts that are not empty"),
            (
                "logprobs",
                self.logprobs is None or 0 <= self.logprobs <= MOST_LOGPROBS,
                f"from 0 to {MOST_LOGPROBS}, or None",
            ),
        )
        for name, holds, expected in rules:
            if not holds:
                raise ArgumentError(f"`{name}` must be {expected}, got {getattr(self, name)!r}")

    @property
    def greedy(self) -> bool:
        """Whether the likeliest token is always taken."""
        return self.temperature == 0

    @property
    def plain(self) -> bool:
        """Whether nothing but the temperature matters."""
        cuts = not self.greedy and (self.top_k is not None or self.top_p is not None)
        return not cuts and self.repetition == 1 and self.logprobs is None


@dataclass(frozen=True)
class Likelihood:
    """The log probability of a chosen token, by the model alone.

    Attributes:
        token: Its number.
        logprob: The natural logarithm of its probability, before temperature and cuts.
        top: The likeliest tokens there and their log probabilities, best first.
    """

    token: int
    logprob: float
    top: tuple[tuple[int, float], ...] = ()


def fresh_seed() -> int:
    """Return a fresh random seed."""
    return secrets.randbits(63)


def uniform(seed: int, index: int) -> float:
    """Return number `index` of a sequence of numbers in [0, 1): SplitMix64 from a seed."""
    return (_mixed(seed, index) >> 11) * 2.0**-53


def uniforms(seeds: Sequence[int], firsts: Sequence[int], count: int) -> np.ndarray:
    """Return `count` numbers of several sequences, as `uniform` does: `(count, seeds)`.

    Args:
        seeds: The seed of each sequence.
        firsts: The first number of each; those before 0 mean nothing.
        count: How many of each.
    """
    index = np.arange(1, count + 1)[:, None] + np.array(firsts, np.int64)
    z = np.array([seed & _WORD for seed in seeds], np.uint64)
    z = z + index.astype(np.uint64) * np.uint64(_STRIDE)
    for shift, factor in _MIXES:
        z = (z ^ (z >> np.uint64(shift))) * np.uint64(factor)
    return ((z ^ (z >> np.uint64(31))) >> np.uint64(11)) * 2.0**-53


def seed_of(seed: int, choice: int) -> int:
    """Return the seed of one of several replies; that of the first is the seed itself."""
    return seed if choice == 0 else _mixed(seed ^ _WORD, choice)


def _mixed(seed: int, index: int) -> int:
    z = (seed + (index + 1) * _STRIDE) & _WORD
    for shift, factor in _MIXES:
        z = ((z ^ (z >> shift)) * factor) & _WORD
    return z ^ (z >> 31)


@dataclass(frozen=True)
class Settings:
    """The numbers of several samplings as tensors, one row for each sequence."""

    temperature: Tensor
    top_k: Tensor
    top_p: Tensor
    repetition: Tensor
    draws: bool
    cuts: bool
    repeats: bool

    @classmethod
    def of(
        cls, samplings: Sequence[Sampling], vocabulary: int, device: torch.device
    ) -> "Settings":
        """Stack the numbers of samplings."""

        def column(numbers: list[float]) -> Tensor:
            return torch.tensor(numbers, dtype=torch.float64, device=device)[:, None]

        wide = [min(s.top_k or vocabulary, vocabulary) for s in samplings]
        return cls(
            column([s.temperature for s in samplings]),
            torch.tensor(wide, device=device)[:, None],
            column([1.0 if s.top_p is None else s.top_p for s in samplings]),
            column([s.repetition for s in samplings]),
            draws=not all(s.greedy for s in samplings),
            cuts=any(s.top_k or s.top_p is not None for s in samplings if not s.greedy),
            repeats=any(s.repetition != 1 for s in samplings),
        )


@checked(logits="b vocabulary", uniforms="b", seen="b vocabulary", returns="b")
def choose(
    logits: Tensor, settings: Settings, uniforms: Tensor, seen: Tensor | None = None
) -> Tensor:
    """Return the next token of each sequence; -1 where the logits are not finite.

    Args:
        logits: The logits of the next token.
        settings: How to choose.
        uniforms: A number in [0, 1) for each sequence.
        seen: Whether a sequence has a token already; needed where `repetition` is not 1.
    """
    # Double precision, so that sums over the vocabulary do not depend on their order.
    x = logits.double()
    if settings.repeats and seen is not None:
        weaker = torch.where(x > 0, x / settings.repetition, x * settings.repetition)
        x = torch.where(seen, weaker, x)
    best, likeliest = x.max(-1)
    chosen = likeliest
    if settings.draws:
        chosen = torch.where(
            settings.temperature[:, 0] == 0, likeliest, _drawn(x, settings, uniforms)
        )
    return torch.where(best.isfinite(), chosen, -1)


def _drawn(x: Tensor, settings: Settings, uniforms: Tensor) -> Tensor:
    """Draw by inverting the cumulative distribution, in the order of the vocabulary."""
    heat = settings.temperature
    # From the best one down, so that no temperature is too small to divide by.
    x = (x - x.max(-1, keepdim=True).values) / torch.where(heat == 0, 1.0, heat)
    if settings.cuts:
        x = x.masked_fill(x < _least(x, settings), -math.inf)
    sums = x.softmax(-1).cumsum(-1)
    target = uniforms.to(sums.dtype)[:, None] * sums[:, -1:]
    return (sums <= target).sum(-1).clamp_(max=x.shape[-1] - 1)


def _least(x: Tensor, settings: Settings) -> Tensor:
    """Return the least logit that stays after top-k and then top-p."""
    ordered = x.sort(-1, descending=True).values
    least = ordered.gather(-1, settings.top_k - 1)
    shares = ordered.masked_fill(ordered < least, -math.inf).softmax(-1)
    before = shares.cumsum(-1) - shares
    kept = ((before < settings.top_p) & (shares > 0)).sum(-1, keepdim=True)
    return ordered.gather(-1, kept.clamp_(min=1) - 1)


@checked(logits="b vocabulary", tokens="b")
def likelihoods(
    logits: Tensor, tokens: Tensor, samplings: Sequence[Sampling]
) -> list[Likelihood | None]:
    """Return the log probabilities of chosen tokens; None where they are not wanted."""
    wanted = [row for row, s in enumerate(samplings) if s.logprobs is not None]
    found: list[Likelihood | None] = [None] * len(samplings)
    if not wanted:
        return found
    rows = torch.tensor(wanted, device=logits.device)
    logs = logits[rows].double().log_softmax(-1)
    most = min(max(samplings[row].logprobs or 0 for row in wanted), logs.shape[-1])
    values, places = logs.topk(most, -1)
    of_chosen = logs.gather(-1, tokens[rows].clamp(min=0)[:, None])[:, 0].tolist()
    chosen = tokens[rows].tolist()
    tops = zip(places.tolist(), values.tolist(), strict=True)
    for row, token, log, (which, how) in zip(wanted, chosen, of_chosen, tops, strict=True):
        top = tuple(zip(which, how, strict=True))[: samplings[row].logprobs]
        found[row] = Likelihood(token, log, top)
    return found
