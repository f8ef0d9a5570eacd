"""Models with random weights for the benchmarks of chat; they do not change its speed."""

import itertools

import torch

from hotgrid.chat import GPT, GPTConfig, LanguageModel
from hotgrid.tokens import Encoding

SHAPES = {
    # The size of the model that comes with hotgrid, and nanochat's model of depth 12.
    "small": {"vocabulary": 8192, "layers": 6, "size": 320, "heads": 5, "context": 512},
    "d12": {"vocabulary": 32_768, "layers": 12, "size": 768, "heads": 6, "context": 2048},
    "tiny": {"vocabulary": 512, "layers": 2, "size": 64, "heads": 2, "context": 256},
}


def random_language(shape: str, device: str, seed: int = 0) -> LanguageModel:
    """A model of a shape, in bfloat16 on a GPU, whose vocabulary has no special tokens."""
    torch.manual_seed(seed)
    config = GPTConfig(**SHAPES[shape], stretch=1)
    with torch.device(device):
        model = GPT(config)
    # What leads back into the stream begins at zero; every layer is to matter.
    for name, weight in model.named_parameters():
        if name.endswith(("attn.out.weight", "mlp.down.weight")):
            torch.nn.init.normal_(weight, std=0.02)
    words = (bytes(each) for each in itertools.product(range(97, 123), repeat=3))
    ranks = {bytes([byte]): byte for byte in range(256)}
    more = itertools.islice(words, config.vocabulary - 256)
    ranks |= {word: 256 + place for place, word in enumerate(more)}
    letters = itertools.product(range(97, 123), repeat=4)
    while len(ranks) < config.vocabulary:
        ranks[bytes(next(letters))] = len(ranks)
    encoding = Encoding("random", pat_str="gpt2", mergeable_ranks=ranks, special_tokens={})
    dtype = torch.bfloat16 if device == "cuda" else torch.float32
    return LanguageModel(model.to(dtype).eval(), encoding, {"name": shape}, None)


def ids_to_bytes(model: GPT) -> int:
    """The bytes of the matrices, all of which a step reads."""
    linear = (each for each in model.modules() if isinstance(each, torch.nn.Linear))
    return sum(each.weight.numel() * each.weight.element_size() for each in linear)
