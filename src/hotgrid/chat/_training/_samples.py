"""Texts that a model makes up."""

from hotgrid.chat._generate._sampling import Sampling
from hotgrid.chat._generate._single import generate
from hotgrid.chat._model._folder import LanguageModel
from hotgrid.chat._model._vocabulary import beginning
from hotgrid.errors import ArgumentError


def samples(
    language: LanguageModel,
    count: int = 3,
    *,
    prompt: str = "",
    max_tokens: int = 64,
    temperature: float = 0.8,
    seed: int = 0,
) -> list[str]:
    """Return texts that begin with a prompt.

    Args:
        language: The model.
        count: How many.
        prompt: How each begins; by default as documents do.
        max_tokens: The most new tokens of each.
        temperature: How random they are.
        seed: The seed of the first; each has its own.

    Raises:
        ArgumentError: The count is negative.
    """
    expect_samples(count)
    encoding = language.encoding
    tokens = [beginning(encoding), *encoding.encode_ordinary(prompt)]
    found = []
    for place in range(count):
        how = Sampling(temperature=temperature, max_tokens=max_tokens, seed=seed + place)
        new = [token for piece in generate(language, tokens, how) for token in piece.tokens]
        found.append(prompt + encoding.decode(new))
    return found


def expect_samples(count: int) -> None:
    """Refuse a negative number of texts, which a command should do before it trains."""
    if count < 0:
        raise ArgumentError(f"`samples` must be at least 0, got {count}")
