"""Tiny models with random weights, and a vocabulary of bytes."""

import itertools

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


def scripted_language(*words: str, endless: bool = False, context: int = 4096) -> LanguageModel:
    """Return a model that replies with some words, each after the one before it.

    Its embedding gives each token a direction of its own, and its head turns that into the
    next one; the blocks add nothing.
    """
    encoding = byte_encoding(*(word.encode() for word in words))
    chain = [
        encoding.encode_single_token("<|assistant|>"),
        *range(256, 256 + len(words)),
        encoding.encode_single_token("<|end|>"),
    ]
    if endless:
        chain[-1] = chain[1]
    model = GPT(
        GPTConfig(
            vocabulary=encoding.n_vocab,
            layers=1,
            size=len(words) + 4 + len(words) % 2,
            heads=1,
            context=context,
            stretch=1,
        )
    )
    with torch.no_grad():
        model.embed.weight.fill_(1.0)
        model.head.linear.weight.zero_()
        for place, (token, after) in enumerate(itertools.pairwise(chain)):
            model.embed.weight[token] = 0.0
            model.embed.weight[token, place] = 1.0
            model.head.linear.weight[after, place] = 100.0
    return LanguageModel(model.eval(), encoding, {"name": "scripted", "tuned": True}, None)
