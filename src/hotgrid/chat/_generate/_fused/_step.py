"""`FusedStep`: one token of several sequences, by a few kernels for each layer.

It computes what `GPT.features`, the head and `choose` compute; tests compare them.
"""

import importlib.util
from typing import Any

import torch
from torch import Tensor, nn

from hotgrid.chat._model._gpt import GPT
from hotgrid.nn import MLP, Attention, Rotary

MOST = 64
_KINDS = (torch.float32, torch.bfloat16, torch.float16)
_NORMS = ("rms", "rms_plain")
_ACTIVATIONS = {name: (name, False) for name in ("relu2", "relu", "gelu", "silu")} | {
    "swiglu": ("silu", True),
    "geglu": ("gelu", True),
    "reglu": ("relu", True),
    "glu": ("sigmoid", True),
}
# Programs that keep an H200 busy, and numbers of a matrix that fit a program's registers.
_BUSY = 132
_PROGRAMS = 36
_NUMBERS = 16384
# Bytes that a program reads ahead, and how many blocks at most.
_AHEAD = 160_000
_STAGES = 3
# NVIDIA GPUs with enough shared memory for that: A100, H100 and H200, B200.
_LARGE = ((8, 0), (9, 0), (10, 0))
# Programs of attention, and the fewest tokens of a part of a sequence, of one or of several.
_SPREAD = 192
_MOST_SPLITS = 16
_SPANS = (64, 256)
# With more sequences kernels are long enough to come one after the other.
_FEW = 16
_ALL = 1 << 30
# As of `rms_norm`, which computes in float32.
_TINY = torch.finfo(torch.float32).eps


def fusible(model: GPT) -> bool:
    """Return whether a model is decoded by `FusedStep`: plain matrices on a large GPU."""
    device = model.embed.weight.device
    # Triton launches on the current one.
    if device.type != "cuda" or device.index != torch.cuda.current_device():
        return False
    large = torch.version.cuda is not None and torch.cuda.get_device_capability() in _LARGE
    return large and understood(model)


def understood(model: GPT) -> bool:
    """Return whether `FusedStep` knows everything that a model is made of."""
    config, weight = model.config, model.embed.weight
    plain = config.norm in _NORMS and config.activation in _ACTIVATIONS
    plain = plain and not config.mixing and not config.value_embeddings
    plain = plain and config.head % 2 == 0 and weight.dtype in _KINDS
    blocks = model.blocks()
    matrices = [model.embed, model.head.linear]
    for block in blocks:
        attn, mlp = block.attn, block.mlp
        plain = plain and type(attn) is Attention and type(mlp) is MLP
        matrices += [attn.q, attn.k, attn.v, attn.out, mlp.up, mlp.gate or mlp.up, mlp.down]
    known = len(blocks) == config.layers and all(
        type(each) in (nn.Embedding, nn.Linear)
        and getattr(each, "bias", None) is None
        and each.weight.dtype is weight.dtype
        and each.weight.is_contiguous()
        for each in matrices
    )
    return plain and known and importlib.util.find_spec("triton") is not None


class FusedStep:
    """Feeds one token of each sequence to a model.

    Args:
        model: A model that is `understood`.
        caches: Keys and values of each layer, of shape `(tokens, heads, size)`; strides are
            free, but for the last.
        page: How many tokens of a cache are a block.
        tokens: The tokens to feed, of shape `(b,)`, 64 bits each.
        table: The blocks of each sequence, of shape `(b, n)`; unused entries are 0.
        position: How many tokens of each sequence are in the caches, of shape `(b,)`.

    Attributes:
        logits: After the tokens, of shape `(b, vocabulary)`.
        overlap: Whether a kernel begins before the one in front of it has ended.
    """

    def __init__(
        self,
        model: GPT,
        caches: list[tuple[Tensor, Tensor]],
        page: int,
        tokens: Tensor,
        table: Tensor,
        position: Tensor,
    ) -> None:
        config, weight = model.config, model.embed.weight
        self._model, self._caches, self._page = model, caches, page
        self._tokens, self._table, self._position = tokens, table, position
        self.batch = batch = len(tokens)
        device = weight.device
        new = device.type == "cuda" and torch.cuda.get_device_capability(device)[0] >= 9
        self.overlap = new and batch <= _FEW
        # Attention to many tokens is split where there would be too few programs.
        enough = -(-_SPREAD // (batch * config.heads))
        most = _MOST_SPLITS if batch == 1 else 4 if batch <= _FEW else 1
        span = _SPANS[batch > 1]
        self._splits = max(1, min(most, enough, table.shape[1] * page // span))

        def empty(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
            return torch.empty(shape, dtype=dtype, device=device)

        self._x = empty(batch, config.size)
        self._qkv = empty(batch, (config.heads + 2 * config.groups) * config.head)
        self._parts = empty(batch, config.heads, self._splits, config.head)
        self._stats = empty(batch, config.heads, self._splits, 2)
        self._hidden = empty(batch, config.inner, dtype=weight.dtype)
        self.logits = empty(batch, config.vocabulary)
        self._score = _cut(config.vocabulary, config.size, batch)
        programs = -(-config.vocabulary // self._score["ROWS"])
        self._best = empty(batch, programs)
        self._likeliest = empty(batch, programs, dtype=torch.int32)
        self._totals = empty(batch, programs, dtype=torch.float64)

    def embed(self) -> None:
        """Begin a step: take the tokens. After `choose` this is done already."""
        from . import _triton_linear as kernels

        tokens, weight, size = self._tokens, self._model.embed.weight, self._model.config.size
        self._run(kernels.embed, (self.batch,), tokens, weight, self._x, size, _TINY,
                  first=True, **self._width())  # fmt: skip

    def _width(self) -> dict[str, Any]:
        config = self._model.config
        return {"NORMED": config.embed_norm, "WIDTH": _power(config.size)}

    def feed(self, temperature: Tensor | None = None, *, choice: int = 0) -> None:
        """Compute the logits after the tokens.

        Args:
            temperature: One for each sequence, of shape `(b,)` in float64, for `choice` 2.
            choice: What `choose` is going to do: 0 for nothing, 1 to take the likeliest
                tokens, 2 to draw.
        """
        from . import _triton_linear as kernels

        model, config, x, batch = self._model, self._model.config, self._x, self.batch
        name, inner = config.activation, config.inner
        for layer, each in enumerate(model.blocks()):
            attn, mlp = each.attn, each.mlp
            rows = (config.heads * config.head, config.groups * config.head)
            cut = _cut(sum(rows) + rows[1], config.size, batch, rows)
            programs = sum(-(-n // cut["ROWS"]) for n in (*rows, rows[1]))
            gain, eps = _gain(each.attn_norm, x)
            # What comes before a step may not be a kernel of these.
            self._run(kernels.project, (programs,), attn.q.weight, attn.k.weight,
                      attn.v.weight, x, gain, self._qkv, config.size, *rows, batch, eps,
                      first=layer == 0, **cut, GAINED=gain is not x)  # fmt: skip
            self._attend(layer)
            self._add(attn.out.weight, self._parts, config.head if self._splits > 1 else 0)
            cut = _cut(inner, config.size, batch)
            gain, eps = _gain(each.mlp_norm, x)
            activation, gated = _ACTIVATIONS[name]
            gate = mlp.up if mlp.gate is None else mlp.gate
            self._run(kernels.widen, (-(-inner // cut["ROWS"]),), mlp.up.weight, gate.weight,
                      x, gain, self._hidden, config.size, inner, batch, eps,
                      **cut, GAINED=gain is not x, NAME=activation, GATED=gated)  # fmt: skip
            self._add(mlp.down.weight, self._hidden, 0)
        gain, eps = _gain(model.norm, x)
        heat = x if temperature is None else temperature
        self._run(kernels.score, (self._best.shape[1],), model.head.linear.weight, x, gain,
                  self.logits, heat, self._best, self._likeliest, self._totals, config.size,
                  config.vocabulary, batch, eps, config.cap or 1.0, **self._score,
                  GAINED=gain is not x, CAPPED=config.cap is not None,
                  CHOICE=choice)  # fmt: skip

    def choose(
        self, temperature: Tensor, uniforms: Tensor, forced: Tensor, place: Tensor,
        chosen: Tensor, *, choice: int,
    ) -> None:  # fmt: skip
        """Choose the next tokens, and begin the next step with them.

        Args:
            temperature: One for each sequence, of shape `(b,)` in float64.
            uniforms: Numbers to draw with, of shape `(steps, b)` in float64.
            forced: Tokens to feed in place of those chosen; -1 where there is none. Of shape
                `(steps, b)`.
            place: The step of each sequence, of shape `(b,)`; it is increased.
            chosen: Gets the chosen tokens, of shape `(steps, b)`; -1 where the logits are
                not finite.
            choice: 1 to take the likeliest tokens, 2 to draw where the temperature is not 0.
        """
        from . import _triton_attend as kernels

        parts, config = self._best.shape[1], self._model.config
        self._run(kernels.choose, (self.batch,), self.logits, temperature, uniforms,
                  self._best, self._likeliest, self._totals, forced, place, self._position,
                  chosen, self._model.embed.weight, self._x, config.vocabulary, parts,
                  self.batch, config.size, _TINY, ROWS=self._score["ROWS"],
                  PARTS=_power(parts), CHOICE=choice, **self._width())  # fmt: skip

    def _attend(self, layer: int) -> None:
        from . import _triton_attend as kernels

        config, attn = self._model.config, self._model.blocks()[layer].attn
        rotary: Any = attn.rotary
        if not isinstance(rotary, Rotary):
            raise TypeError("the attention of a GPT has rotary positions")
        keys, values = self._caches[layer]
        (q_gain, eps), (k_gain, _) = (
            (self._x, 0.0) if norm is None else _gain(norm, self._x)
            for norm in (attn.q_norm, attn.k_norm)
        )
        window = config.window_of(layer) or _ALL
        scale = config.qk_gain * config.head**-0.5
        half = _power(config.head // 2)
        self._run(kernels.attend, (self.batch, config.heads, self._splits), self._qkv, q_gain,
                  k_gain, rotary.cos, rotary.sin, keys, values, self._table, self._position,
                  self._parts, self._stats, config.heads, config.groups, self._qkv.shape[1],
                  self._table.shape[1], keys.stride(0), keys.stride(1), rotary.length, window,
                  self._splits, eps, scale, HEAD=config.head, HALF=half, PADDED=2 * half,
                  PAGE=self._page, BLOCK=max(16, min(64, 2048 // half)),
                  NORMED=attn.q_norm is not None, GAINED=q_gain is not self._x,
                  WHOLE=self._splits == 1)  # fmt: skip

    def _add(self, weight: Tensor, given: Tensor, head: int) -> None:
        from . import _triton_linear as kernels

        rows, columns = weight.shape
        cut = _cut(rows, columns, self.batch, most=head or 256)
        self._run(kernels.add, (-(-rows // cut["ROWS"]),), weight, given, self._stats, self._x,
                  rows, columns, self.batch, **cut, HEAD=head,
                  SPLITS=self._splits if head else 1)  # fmt: skip

    def _run(
        self, kernel: Any, grid: tuple[int, ...], *given: Any, first: bool = False, **shape: Any
    ) -> None:
        options = {"launch_pdl": True} if self.overlap and not first else {}
        if shape.get("BATCH", 1) > 1:
            inputs = shape["SPLITS"] if shape.get("HEAD") else 1
            matrix = shape["ROWS"] * self._model.embed.weight.element_size()
            read = shape["BLOCK"] * (matrix + 4 * inputs * shape["BATCH"])
            options["num_stages"] = max(2, min(_STAGES, _AHEAD // read))
        kernel[grid](*given, **shape, PDL=self.overlap, num_warps=4, **options)


def _gain(norm: nn.Module, none: Tensor) -> tuple[Tensor, float]:
    """Return the gain of a norm, or `none` where it has none, and its small number."""
    weight, eps = norm.weight, norm.eps
    if not isinstance(eps, float):
        raise TypeError(f"{norm} is not one of {', '.join(_NORMS)}")
    return (weight if isinstance(weight, Tensor) else none), eps


def _cut(
    rows: int,
    columns: int,
    batch: int,
    parts: tuple[int, ...] | None = None,
    *,
    most: int = 256,
) -> dict[str, Any]:
    """Return how a matrix is divided among programs.

    Args:
        rows: Rows of the matrix.
        columns: Columns of the matrix.
        batch: How many sequences.
        parts: Rows that may not mix; by default all of them may.
        most: The most columns that are read at once for several sequences.
    """
    whole = columns & -columns
    if batch == 1:
        block = min(256, whole) if whole >= 64 else min(256, _power(columns))
        few = max(1, min(16, rows // _BUSY, _NUMBERS // columns))
        together = 1 << (few.bit_length() - 1)
    else:
        most = min(most, 256 if batch <= _FEW else 128)
        block = min(most, whole) if whole >= 32 else max(16, min(most, _power(columns)))
        # The more rows, the less often the inputs are read.
        together = max(16, min(64, 1 << max(1, rows // _PROGRAMS).bit_length() - 1))
    even = columns % block == 0 and all(n % together == 0 for n in parts or (rows,))
    steps = -(-columns // block) if batch == 1 else 1
    padded = 1 if batch == 1 else max(16, _power(batch))
    return {"ROWS": together, "BLOCK": block, "STEPS": steps, "BATCH": padded, "EVEN": even}


def _power(number: int) -> int:
    return 1 << (number - 1).bit_length()
