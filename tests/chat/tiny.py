"""Tiny models with random weights, and a vocabulary of bytes."""

import torch

from hotgrid.chat import GPT, GPTConfig, LanguageModel
from hotgrid.tokens import Encoding

SPECIALS = ("<|bos|>", "<|system|>", "<|user|>", "<|assistant|>", "<|end|>")


def byte_encoding(*more: bytes) -> Encoding:
    """Return a vocabulary of all bytes, some longer tokens and the special tokens of chats."""
    ranks = {bytes([byte]): byte for byte in range(256)}
    ranks |= {word: 256 + place for place, word in enumerate(more)}
    first = len(ranks)
    specials = {name: first + place for place, name in enumerate(SPECIALS)}
    return Encoding("bytes", pat_str="gpt2", mergeable_ranks=ranks, special_tokens=specials)


def random_gpt(seed: int = 0, **numbers: object) -> GPT:
    """Return a tiny GPT whose every weight is random, so that every part matters."""
    given = {
        "vocabulary": 261,
        "layers": 2,
        "size": 32,
        "heads": 2,
        "context": 64,
        "stretch": 1,
    }
    model = GPT(GPTConfig(**{**given, **numbers}))  # type: ignore[arg-type]
    source = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in model.parameters():
            scale = 0.3 if weight.ndim > 1 else 0.5
            weight.copy_(scale * torch.randn(weight.shape, generator=source))
    return model.eval()


def random_language(
    seed: int = 0, *, encoding: Encoding | None = None, tuned: bool = True, **numbers: object
) -> LanguageModel:
    """Return a tiny model in double precision, so that rounding decides no token."""
    model = random_gpt(seed, **numbers).double()
    card = {"name": "tiny", "tuned": tuned}
    return LanguageModel(model, encoding or byte_encoding(), card, None)
