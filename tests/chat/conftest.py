"""What tests of chat share: small vocabularies, models and texts."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from hotgrid.chat import GPT, GPTConfig, chat_encoding
from hotgrid.tokens import Encoding


@pytest.fixture(scope="session")
def byte_encoding() -> Encoding:
    """A vocabulary of bytes, with the special tokens of a chat."""
    ranks = {bytes([byte]): byte for byte in range(256)}
    plain = Encoding("bytes", pat_str="gpt2", mergeable_ranks=ranks, special_tokens={})
    return chat_encoding(plain)


@pytest.fixture
def small_gpt() -> Callable[..., GPT]:
    """Make a GPT with random weights, projections included."""

    def make(*, llama: bool = False, seed: int = 0, **options: Any) -> GPT:
        numbers = {
            "vocabulary": 64,
            "layers": 3,
            "size": 64,
            "heads": 4,
            "context": 32,
        } | options
        torch.manual_seed(seed)
        model = GPT(GPTConfig.llama(**numbers) if llama else GPTConfig(**numbers))
        with torch.no_grad():
            for each in model.parameters():
                each.copy_(torch.randn_like(each) * (0.4 if each.ndim < 2 else 0.2))
        return model.eval()

    return make


@pytest.fixture
def text_file(tmp_path: Path) -> Path:
    """A few hundred short documents as JSON lines."""
    import json

    file = tmp_path / "text.jsonl"
    words = ["the", "lattice", "is", "warm", "and", "a", "wave", "crosses", "it", "slowly"]
    lines = [
        json.dumps({"text": " ".join(words[(n * k) % 10] for k in range(1, 4 + n % 17)) + "."})
        for n in range(400)
    ]
    file.write_text("\n".join(lines) + "\n")
    return file
