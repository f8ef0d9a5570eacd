"""The language model: blocks of `hotgrid.nn`, a residual stream through them, and a head."""

from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hotgrid.contracts import checked
from hotgrid.nn import MLP, Attention, Head, KVCache, Mask, Norm, Rotary

from ._config import GPTConfig

# Gates read the first few elements of the stream.
_GATE = 12
_SMEAR = 24
# A target that does not count in the loss, as in torch.
IGNORED = -100


class Block(nn.Module):
    """Attention and an MLP, each added to the stream."""

    def __init__(self, config: GPTConfig, layer: int, rotary: Rotary) -> None:
        super().__init__()
        self.attn_norm = _norm(config)
        self.attn = Attention(
            config.size,
            config.heads,
            kv_heads=config.groups,
            head_size=config.head,
            rotary=rotary,
            qk_norm=_norm_spec(config) if config.qk_norm else None,
            scale=config.qk_gain * config.head**-0.5,
        )
        self.mlp_norm = _norm(config)
        self.mlp = MLP(config.size, config.inner, config.activation)
        self.values = self.gate = None
        if config.has_values(layer):
            self.values = nn.Embedding(config.vocabulary, config.groups * config.head)
            self.gate = nn.Linear(_GATE, config.groups, bias=False)

    def forward(
        self, x: Tensor, tokens: Tensor, mask: Mask, cache: KVCache | None = None
    ) -> Tensor:
        """Return the stream after this block."""
        normed = self.attn_norm(x)
        x = x + self.attn(normed, mask, cache=cache, values=self._values(normed, tokens))
        return x + self.mlp(self.mlp_norm(x))

    def _values(self, normed: Tensor, tokens: Tensor) -> Tensor | None:
        if self.values is None or self.gate is None:
            return None
        gate = 3 * torch.sigmoid(self.gate(normed[..., :_GATE]))
        values = self.values(tokens).to(normed.dtype)
        return (values.unflatten(-1, (gate.shape[-1], -1)) * gate.unsqueeze(-1)).flatten(-2)


@dataclass
class Memory:
    """The state of a GPT after some tokens, to continue from them.

    Attributes:
        caches: Keys and values of every layer.
        last: The embedding of the last token, which the next one takes a share of.
    """

    caches: list[KVCache] = field(default_factory=list)
    last: Tensor | None = None

    @property
    def position(self) -> int | Tensor:
        """How many tokens it has seen."""
        return self.caches[0].position


class GPT(nn.Module):
    """A language model.

    Args:
        config: Its shape.

    Attributes:
        config: Its shape.
        embed: The embedding of tokens.
        h: The blocks.
        norm: The norm before the head.
        head: The logits.

    Example:
        >>> model = GPT(GPTConfig(vocabulary=256, layers=2, size=64, heads=2, context=32))
        >>> tokens = torch.zeros(1, 8, dtype=torch.int64)
        >>> model(tokens).shape
        torch.Size([1, 8, 256])
        >>> model.loss(tokens, tokens).item() > 0
        True
    """

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.config = config
        self.vocabulary = config.vocabulary
        rotary = Rotary(config.head, config.context * config.stretch, base=config.rotary_base)
        self.embed = nn.Embedding(config.vocabulary, config.size)
        self.h = nn.ModuleList(Block(config, layer, rotary) for layer in range(config.layers))
        self.norm = _norm(config)
        self.head = Head(config.size, config.vocabulary, cap=config.cap)
        if config.tied:
            self.head.linear.weight = self.embed.weight
        if config.mixing:
            self.stream_gain = nn.Parameter(torch.empty(config.layers))
            self.embed_gain = nn.Parameter(torch.empty(config.layers))
            self.smear = nn.Linear(_SMEAR, 1, bias=False)
            self.smear_gain = nn.Parameter(torch.empty(1))
            self.middle_gain = nn.Parameter(torch.empty(1))
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Initialise; projections into the stream are zero, so it starts as an embedding."""
        bound = (3 / self.config.size) ** 0.5
        # As a head it must be small, so that all tokens are equally likely at first.
        nn.init.normal_(self.embed.weight, std=0.02 if self.config.tied else 0.8)
        if not self.config.tied:
            nn.init.normal_(self.head.linear.weight, std=0.001)
        for block in self.blocks():
            for linear in (block.attn.q, block.attn.k, block.attn.v):
                nn.init.uniform_(linear.weight, -bound, bound)
            nn.init.uniform_(block.mlp.up.weight, -0.4 * bound, 0.4 * bound)
            if block.mlp.gate is not None:
                nn.init.uniform_(block.mlp.gate.weight, -0.4 * bound, 0.4 * bound)
            nn.init.zeros_(block.attn.out.weight)
            nn.init.zeros_(block.mlp.down.weight)
            if block.values is not None and block.gate is not None:
                nn.init.uniform_(block.values.weight, -bound, bound)
                nn.init.uniform_(block.gate.weight, 0.0, 0.02)
        if self.config.mixing:
            depth = torch.linspace(0, 1, self.config.layers)
            self.stream_gain.copy_(1.15 - 0.10 * depth)
            self.embed_gain.copy_(0.20 - 0.15 * depth)
            nn.init.uniform_(self.smear.weight, 0.0, 0.02)
            nn.init.zeros_(self.smear_gain)
            nn.init.constant_(self.middle_gain, 0.2)

    def blocks(self) -> list[Block]:
        """Return the blocks, in order."""
        return [block for block in self.h if isinstance(block, Block)]

    def memory(
        self, batch: int, length: int, *, static: bool = False, dtype: torch.dtype | None = None
    ) -> Memory:
        """Return an empty memory for decoding.

        Args:
            batch: How many sequences.
            length: The most tokens of each.
            static: Whether shapes stay the same, for CUDA graphs; see `KVCache`.
            dtype: The dtype of keys and values; by default that of the weights.
        """
        config, weight = self.config, self.embed.weight
        caches = [
            KVCache(
                batch,
                config.groups,
                length,
                config.head,
                static=static,
                device=weight.device,
                dtype=dtype or weight.dtype,
            )
            for _ in range(config.layers)
        ]
        return Memory(caches)

    @checked(tokens="b t", targets="b t")
    def forward(
        self,
        tokens: Tensor,
        *,
        targets: Tensor | None = None,
        documents: Tensor | None = None,
        memory: Memory | None = None,
    ) -> Tensor:
        """Return the logits of the token after each, in float32: `b t vocabulary`.

        Args:
            tokens: Numbers of tokens.
            targets: With them, the mean cross-entropy in nats is returned instead; -100 does
                not count.
            documents: The document of each token, where several share a row; a token sees
                those of its own.
            memory: The cache of the tokens before these; it is updated.
        """
        logits = self.head(self.features(tokens, documents=documents, memory=memory))
        if targets is None:
            return logits
        wanted = targets.flatten()
        total = F.cross_entropy(logits.flatten(0, 1), wanted, reduction="sum")
        return total / (wanted != IGNORED).sum().clamp(min=1)

    def loss(
        self, tokens: Tensor, targets: Tensor, *, documents: Tensor | None = None
    ) -> Tensor:
        """Return the mean cross-entropy of the targets in nats; -100 does not count."""
        return self.forward(tokens, targets=targets, documents=documents)

    @checked(tokens="b t")
    def features(
        self, tokens: Tensor, *, documents: Tensor | None = None, memory: Memory | None = None
    ) -> Tensor:
        """Return the input of the head: the normed stream after the last block."""
        masks = self._masks(documents)
        x = start = self._embedded(tokens, documents, memory)
        middle: Tensor | None = None
        for layer, block in enumerate(self.h):
            if self.config.mixing:
                x = self.stream_gain[layer] * x + self.embed_gain[layer] * start
            cache = None if memory is None else memory.caches[layer]
            x = block(x, tokens, masks[self.config.window_of(layer)], cache)
            if layer == self.config.layers // 2:
                middle = x
        if self.config.mixing and middle is not None:
            x = x - self.middle_gain.to(x.dtype) * middle
        return self.norm(x)

    def _embedded(
        self, tokens: Tensor, documents: Tensor | None, memory: Memory | None
    ) -> Tensor:
        x = self.embed(tokens)
        if torch.is_autocast_enabled(x.device.type):
            x = x.to(torch.get_autocast_dtype(x.device.type))
        if self.config.embed_norm:
            x = F.rms_norm(x, x.shape[-1:])
        if not self.config.mixing:
            return x
        before = None if memory is None else memory.last
        previous = torch.zeros_like(x[:, :1]) if before is None else before
        if memory is not None:
            memory.last = x[:, -1:]
        share = self.smear_gain.to(x.dtype) * torch.sigmoid(self.smear(x[..., :_SMEAR]))
        if documents is not None:
            # The first token of a document has none before it.
            same = F.pad(documents[:, 1:] == documents[:, :-1], (1, 0), value=True)
            share = share * same.unsqueeze(-1).to(x.dtype)
        return x + share * torch.cat((previous, x[:, :-1]), 1)

    def _masks(self, documents: Tensor | None) -> dict[int | None, Mask]:
        windows = {self.config.window_of(layer) for layer in range(self.config.layers)}
        return {window: Mask(window=window, documents=documents) for window in windows}

    def flops(self, length: int | None = None) -> float:
        """Return the operations of training on one token of a sequence of some length.

        Six for each parameter of a matrix, and twelve for each pair of a query and a key
        that a layer could compare, as usual: a causal mask is not counted.
        """
        length = length or self.config.context
        matrices = sum(
            module.weight.numel() for module in self.modules() if isinstance(module, nn.Linear)
        )
        seen = sum(
            min(self.config.window_of(layer) or length, length)
            for layer in range(self.config.layers)
        )
        return 6.0 * matrices + 12.0 * self.config.heads * self.config.head * seen


def _norm_spec(config: GPTConfig) -> Norm:
    return Norm(config.norm, {"eps": config.eps})


def _norm(config: GPTConfig) -> nn.Module:
    return _norm_spec(config)(config.size)
