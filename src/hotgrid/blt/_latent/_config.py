"""`LatentConfig`: the sizes of a byte-latent transformer, and presets."""

from dataclasses import dataclass
from types import MappingProxyType

from hotgrid.blt._layers._ids import VOCABULARY
from hotgrid.errors import ArgumentError


@dataclass(frozen=True)
class LatentConfig:
    """The sizes of a `LatentTransformer`; the defaults are those of blt-1b.

    Args:
        local: The size of byte states, in the encoder and the decoder.
        local_heads: Their heads, of cross-attention too.
        local_hidden: The hidden size of their MLPs.
        encoder_layers: Blocks of the encoder.
        decoder_layers: Blocks of the decoder.
        latent: The size of patch states.
        latent_heads: Heads of the transformer over patches.
        latent_hidden: The hidden size of its MLPs.
        latent_layers: Its blocks.
        vectors: Vectors of the size `local` that a patch is exchanged in.
        window: How many bytes a byte sees in the encoder and the decoder; None for all.
        ngrams: Lengths of hashed n-grams.
        ngram_rows: Rows of the table of each.
        ngram_functions: Hash functions for each length.
        local_length: Positions of bytes.
        latent_length: Positions of patches.
        base: The base of rotary angles.
        eps: Added under the root of norms.
        vocabulary: Bytes and special ids.

    Raises:
        ArgumentError: A size is below 1, or they do not divide.
    """

    local: int = 1024
    local_heads: int = 16
    local_hidden: int = 2816
    encoder_layers: int = 1
    decoder_layers: int = 9
    latent: int = 2048
    latent_heads: int = 16
    latent_hidden: int = 5632
    latent_layers: int = 25
    vectors: int = 2
    window: int | None = 512
    ngrams: tuple[int, ...] = (3, 4, 5, 6, 7, 8)
    ngram_rows: int = 500_002
    ngram_functions: int = 1
    local_length: int = 24_576
    latent_length: int = 4096
    base: float = 500_000.0
    eps: float = 1e-5
    vocabulary: int = VOCABULARY

    def __post_init__(self) -> None:
        object.__setattr__(self, "ngrams", tuple(self.ngrams))
        for name, value in vars(self).items():
            if name in ("base", "eps", "ngrams") or (name == "window" and value is None):
                continue
            if type(value) is not int or value < 1:
                raise ArgumentError(f"`{name}` is {value!r}; expected a whole number from 1")
        for size, heads in (("local", "local_heads"), ("latent", "latent_heads")):
            if getattr(self, size) % (2 * getattr(self, heads)):
                raise ArgumentError(
                    f"`{size}` {getattr(self, size)} is not a multiple of 2 * "
                    f"{getattr(self, heads)} `{heads}`"
                )


LATENT_SIZES = MappingProxyType(
    {
        "tiny": LatentConfig(
            local=256,
            local_heads=4,
            local_hidden=768,
            decoder_layers=6,
            latent=512,
            latent_heads=8,
            latent_hidden=1536,
            latent_layers=8,
            ngram_rows=8192,
        ),
        "1b": LatentConfig(),
    }
)
"""Sizes by name."""
