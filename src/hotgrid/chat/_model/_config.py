"""The shape of a GPT: every number that its parameters and its arithmetic depend on."""

import dataclasses
import json
from dataclasses import dataclass
from typing import Any, Self

from hotgrid.errors import ArgumentError, near


@dataclass(frozen=True)
class GPTConfig:
    """The shape of a GPT.

    Args:
        vocabulary: How many tokens there are.
        layers: How many blocks.
        size: Width of the residual stream.
        heads: Heads of queries.
        kv_heads: Heads of keys and values; fewer than `heads` is grouped-query attention.
        head_size: Size of a head; by default `size / heads`.
        context: The most tokens of a training sequence; rotary tables are `stretch` times
            as long.
        hidden: Width inside a block's MLP; by default four times `size`.
        activation: The activation of the MLP: `relu2`, `gelu`, or `swiglu` and the like.
        norm: A norm of `hotgrid.nn`: `rms_plain` has no parameters, `rms` a gain.
        eps: The small number under the root of the norm.
        rotary_base: Base of the angles of the rotary positions.
        qk_norm: Whether queries and keys are normed.
        qk_gain: The factor of attention scores beside 1 / sqrt(head_size).
        cap: The logits are soft-capped at this; None for no cap.
        window: A letter a layer, repeated: `L` sees all tokens before it, `S` the last
            `short`. The last layer sees all.
        short: How many tokens an `S` layer sees; by default a quarter of the context,
            rounded up to 128.
        embed_norm: Whether the embedding is normed.
        value_embeddings: Whether every other layer adds an embedding of the token to its
            values.
        mixing: Whether layers mix the embedding back into the stream, tokens take a share of
            the one before them, and the middle of the network is subtracted from its end.
        tied: Whether the head uses the embedding's weights.
        stretch: How much longer than `context` sequences may get when generating.

    Raises:
        ArgumentError: Numbers do not fit together.

    Example:
        >>> config = GPTConfig(vocabulary=256, layers=2, size=64, heads=2)
        >>> GPTConfig.from_json(config.to_json()) == config
        True
    """

    vocabulary: int = 32_768
    layers: int = 12
    size: int = 768
    heads: int = 6
    kv_heads: int | None = None
    head_size: int | None = None
    context: int = 2048
    hidden: int | None = None
    activation: str = "relu2"
    norm: str = "rms_plain"
    eps: float = 1e-6
    rotary_base: float = 100_000.0
    qk_norm: bool = True
    qk_gain: float = 1.44
    cap: float | None = 15.0
    window: str = "L"
    short: int | None = None
    embed_norm: bool = True
    value_embeddings: bool = False
    mixing: bool = False
    tied: bool = False
    stretch: int = 4

    def __post_init__(self) -> None:
        for name in ("vocabulary", "layers", "size", "heads", "context", "stretch"):
            if getattr(self, name) < 1:
                raise ArgumentError(f"`{name}` must be at least 1, got {getattr(self, name)}")
        if self.head_size is None and self.size % self.heads:
            raise ArgumentError(
                f"`size` {self.size} is not a multiple of {self.heads} heads; choose "
                "another number, or give `head_size`"
            )
        if self.head % 2:
            raise ArgumentError(
                f"a head has {self.head} elements, and rotary positions need an even number; "
                "choose another `size`, `heads` or `head_size`"
            )
        if self.heads % self.groups:
            raise ArgumentError(
                f"{self.heads} heads cannot share {self.groups} `kv_heads` evenly; choose a "
                "divisor"
            )
        if not self.window or set(self.window) - set("SL"):
            raise ArgumentError(
                f"`window` {self.window!r} must be letters L (sees all) and S (sees the last "
                "few), such as 'SSSL'"
            )

    @property
    def groups(self) -> int:
        """Heads of keys and values."""
        return self.kv_heads or self.heads

    @property
    def head(self) -> int:
        """Size of a head."""
        return self.head_size or self.size // self.heads

    @property
    def inner(self) -> int:
        """Width inside an MLP."""
        return self.hidden or 4 * self.size

    def window_of(self, layer: int) -> int | None:
        """Return how many tokens a layer sees; None for all."""
        if layer == self.layers - 1 or self.window[layer % len(self.window)] == "L":
            return None
        return self.short or min(self.context, -(-self.context // 4 // 128) * 128)

    def has_values(self, layer: int) -> bool:
        """Return whether a layer has value embeddings: every other one, and the last."""
        return self.value_embeddings and layer % 2 == (self.layers - 1) % 2

    @classmethod
    def llama(cls, **numbers: Any) -> Self:
        """Return the shape of a Llama: gated MLP, learned norms, no cap; see `save_llama`."""
        style: dict[str, Any] = {
            "activation": "swiglu",
            "norm": "rms",
            "rotary_base": 10_000.0,
            "qk_norm": False,
            "qk_gain": 1.0,
            "cap": None,
            "embed_norm": False,
        }
        return cls(**{**style, **numbers})

    def to_json(self) -> str:
        """Return it as JSON."""
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read it back.

        Raises:
            ArgumentError: It is not a JSON object, or a name is unknown.
        """
        try:
            given: Any = json.loads(text)
        except ValueError as problem:
            raise ArgumentError(f"this configuration is not JSON: {problem}") from None
        names = [field.name for field in dataclasses.fields(cls)]
        if not isinstance(given, dict):
            raise ArgumentError(f"a configuration is a JSON object, got {text[:80]!r}")
        for name in given:
            if name not in names:
                raise ArgumentError(f"a GPT has no `{name}`{near(name, names)}")
        return cls(**given)
