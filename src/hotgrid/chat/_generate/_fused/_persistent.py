"""`PersistentStep`: tokens of one sequence by one kernel, which computes whole steps.

It computes what `FusedStep` computes for one sequence; tests compare them. The kernel is CUDA
C++, in the folder `cuda`.
"""

import ctypes
import functools
import logging
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from hotgrid.chat._model._gpt import GPT
from hotgrid.errors import ArgumentError
from hotgrid.nn import Rotary

from ._nvrtc import Program, compiled

FILES = (
    "shapes.cuh", "ring.cuh", "linear.cuh", "attend.cuh", "combine.cuh", "choose.cuh",
    "decode.cu",
)  # fmt: skip
FOLDER = Path(__file__).parent / "cuda"
# Warps that compute. One more reads weights ahead.
WARPS = 6
_KINDS = (torch.float32, torch.bfloat16, torch.float16)
# The order is that of `activated` in `linear.cuh`.
_ACTIVATIONS = ("relu2", "relu", "gelu", "silu", "sigmoid")
_GATED = {"swiglu": "silu", "geglu": "gelu", "reglu": "relu", "glu": "sigmoid"}
_FIELDS = 14
_SLOT = 12288
_LEAST_SLOTS, _MOST_SLOTS = 8, 64
# Lines whose sums a block holds; as in `shapes.cuh`.
_PASS = 96
# Shared memory that a kernel can have without asking for more.
_PLAIN_SHARED = 48 << 10
_ALL = 1 << 62
_log = logging.getLogger(__name__)


class Call(ctypes.Structure):
    """The parameter of the kernel; see `shapes.cuh`."""

    _fields_ = [
        *((name, ctypes.c_void_p) for name in (
            "layers", "embedding", "head", "gain", "cosines", "sines", "table", "position",
            "next", "forced", "place", "chosen", "temperature", "uniforms", "logits", "words",
            "counters",
        )),
        *((name, ctypes.c_int64) for name in ("along", "across")),
        *((name, ctypes.c_int) for name in ("page_bits", "pages", "reach")),
        *((name, ctypes.c_float) for name in ("eps", "scale", "cap")),
        *((name, ctypes.c_int) for name in ("count", "choice")),
    ]  # fmt: skip


def persistable(model: GPT, caches: Sequence[tuple[Tensor, Tensor]]) -> bool:
    """Return whether the kernel knows a model that is `understood`, and its caches."""
    config, weight = model.config, model.embed.weight
    kind, wide = weight.dtype, weight.element_size()
    head, turned = config.head, config.heads * config.head
    # Vectors of 16 bytes, and lanes of a warp that share a key.
    vector = 16 // wide
    fits = 8 <= head <= 128 and head & (head - 1) == 0
    fits = fits and all(n % 8 == 0 for n in (config.size, config.inner, turned))
    first = caches[0][0]
    tensors = [*(each for pair in caches for each in pair)]
    fits = fits and all(
        each.dtype is kind
        and each.stride() == first.stride()
        and each.stride(2) == 1
        and each.stride(0) % vector == each.stride(1) % vector == 0
        # Such distances are 32 bits.
        and max(each.stride(0), each.stride(1) * each.shape[1]) * wide < 1 << 31
        for each in tensors
    )
    tensors += [each for each in model.parameters() if each.ndim > 1]
    rotaries = [block.attn.rotary for block in model.blocks()]
    return (
        fits
        and all(each.data_ptr() % 16 == 0 for each in tensors)
        and all(
            isinstance(each, Rotary)
            and each.cos.dtype is torch.float32
            and not each.interleaved
            for each in rotaries
        )
        and all(each.eps == config.eps for each in model.modules() if hasattr(each, "eps"))
    )


def shape(model: GPT, blocks: int, shared: int, warps: int = WARPS) -> dict[str, int]:
    """Return what the source is compiled for.

    Args:
        model: A model that is `persistable`.
        blocks: The most blocks that run at once.
        shared: Bytes of shared memory of a block.
        warps: Warps of a block that compute.
    """
    config, weight = model.config, model.embed.weight
    wide, turned = weight.element_size(), config.heads * config.head
    name = _GATED.get(config.activation, config.activation)
    gated = config.activation in _GATED
    projected = (config.heads + 2 * config.groups) * config.head
    # Every block has rows of every matrix.
    blocks = min(blocks, config.size, config.inner, projected, config.vocabulary)
    # A slot has four rows of the stream's width, if these are short, or one of any other.
    longest = wide * max(config.size, config.inner, turned)
    slot = max(longest, min(_SLOT, 4 * wide * config.size))
    logits = -(-config.vocabulary // blocks)
    stride = -(-warps // 4) * 4 | 4
    longs = 2 * _MOST_SLOTS + _FIELDS * config.layers + 1 + logits + warps + blocks
    floats = 2 * _PASS * stride + 3 * stride + warps * max(config.head, 256)
    floats += max(config.head, 16) + -(-config.size // blocks) + logits + 2 * max(warps, blocks)
    state = 8 * longs + 4 * floats + 512
    return {
        "KIND": _KINDS.index(weight.dtype),
        "LAYERS": config.layers,
        "SIZE": config.size,
        "HEADS": config.heads,
        "GROUPS": config.groups,
        "HEAD": config.head,
        "INNER": config.inner,
        "VOCABULARY": config.vocabulary,
        "ACTIVATION": _ACTIVATIONS.index(name),
        "GATED": int(gated),
        "GAINED": int(config.norm == "rms"),
        "QK_NORMED": int(config.qk_norm),
        "EMBED_NORMED": int(config.embed_norm),
        "CAPPED": int(config.cap is not None),
        "BLOCKS": blocks,
        "WARPS": warps,
        "SLOTS": min(_MOST_SLOTS, (shared - state) // slot),
        "SLOT": slot,
        "STATE": state,
    }


def words_of(given: dict[str, int]) -> int:
    """Return how many words blocks exchange; at least as many as `WORDS` in `shapes.cuh`."""
    heads, turned = given["HEADS"], given["HEADS"] * given["HEAD"]
    projected = turned + 2 * given["GROUPS"] * given["HEAD"]
    numbers = [projected, given["SIZE"], given["SIZE"], given["INNER"], turned]
    numbers += [turned] * (32 + 4) + [2 * 32 * heads, 2 * 4 * heads, 4 * heads]
    return sum(-(-n // 64) * 64 for n in numbers) + 8 * given["BLOCKS"] + 4


class PersistentStep:
    """Feeds tokens of one sequence to a model; see `FusedStep` for its arguments.

    Attributes:
        logits: After the last token, of shape `(1, vocabulary)`.
    """

    def __init__(
        self,
        model: GPT,
        caches: list[tuple[Tensor, Tensor]],
        page: int,
        tokens: Tensor,
        table: Tensor,
        position: Tensor,
        given: dict[str, int],
    ) -> None:
        config, device = model.config, model.embed.weight.device
        self._given, self._tokens = given, tokens
        self._next = torch.zeros(1, dtype=torch.int64, device=device)
        self.logits = torch.empty(1, config.vocabulary, device=device)
        words = torch.zeros(words_of(given), dtype=torch.int32, device=device)
        counters = torch.zeros(4, dtype=torch.int32, device=device)
        layers = _fields(model, caches, device)
        rotary, gain = model.blocks()[0].attn.rotary, model.norm.weight
        if not isinstance(rotary, Rotary):
            raise TypeError("the attention of a GPT has rotary positions")
        # What the kernel reads must not go.
        self._kept = (model, caches, table, position, words, counters, layers)
        self._of_model = Call(
            layers=layers.data_ptr(),
            embedding=model.embed.weight.data_ptr(),
            head=model.head.linear.weight.data_ptr(),
            gain=gain.data_ptr() if isinstance(gain, Tensor) else 0,
            cosines=rotary.cos.data_ptr(),
            sines=rotary.sin.data_ptr(),
            table=table.data_ptr(),
            position=position.data_ptr(),
            next=self._next.data_ptr(),
            logits=self.logits.data_ptr(),
            words=words.data_ptr(),
            counters=counters.data_ptr(),
            along=caches[0][0].stride(0),
            across=caches[0][0].stride(1),
            page_bits=page.bit_length() - 1,
            pages=table.shape[1],
            reach=rotary.length,
            eps=config.eps,
            scale=config.qk_gain * config.head**-0.5,
            cap=config.cap or 1.0,
        )

    def embed(self) -> None:
        """Begin with the tokens. After `run` this is done already."""
        self._next.copy_(self._tokens)

    def feed(self) -> None:
        """Compute the logits after the token."""
        self._start(self._of_call(count=1, choice=0))

    def run(
        self, count: int, temperature: Tensor, uniforms: Tensor, forced: Tensor, place: Tensor,
        chosen: Tensor, *, choice: int,
    ) -> None:  # fmt: skip
        """Feed a token and choose the next, several times; see `FusedStep.choose`."""
        if count:
            self._start(self._of_call(
                count=count, choice=choice, temperature=temperature.data_ptr(),
                uniforms=uniforms.data_ptr(), forced=forced.data_ptr(),
                place=place.data_ptr(), chosen=chosen.data_ptr(),
            ))  # fmt: skip

    def _of_call(self, **numbers: int) -> Call:
        call = Call.from_buffer_copy(self._of_model)
        for name, number in numbers.items():
            setattr(call, name, number)
        return call

    def _start(self, call: Call) -> None:
        given = self._given
        program = program_for(torch.cuda.current_device(), **given)
        if program is None:
            raise RuntimeError("there is no kernel for this model; `persistent_step` looks")
        program.launch(given["BLOCKS"], 32 * (given["WARPS"] + 1), call)


def persistent_step(
    model: GPT,
    caches: list[tuple[Tensor, Tensor]],
    page: int,
    tokens: Tensor,
    table: Tensor,
    position: Tensor,
) -> PersistentStep | None:
    """Return a `PersistentStep`, or None where one kernel cannot do all; see `FusedStep`."""
    if not tokens.is_cuda or len(tokens) != 1 or page & (page - 1):
        return None
    if not persistable(model, caches):
        return None
    device = tokens.get_device()
    about = torch.cuda.get_device_properties(device)
    if (about.major, about.minor) != (9, 0):
        return None
    given = shape(model, about.multi_processor_count, about.shared_memory_per_block_optin)
    if given["STATE"] > _PLAIN_SHARED or given["SLOTS"] < _LEAST_SLOTS:
        return None
    if program_for(device, **given) is None:
        return None
    return PersistentStep(model, caches, page, tokens, table, position, given)


@functools.cache
def program_for(device: int, **given: int) -> Program | None:
    """Return the kernel for a GPU, or None where it cannot be compiled, which is logged."""
    text = "\n".join((FOLDER / name).read_text("utf-8") for name in ("device.cuh", *FILES))
    options = [f"-D{name}={number}" for name, number in given.items()]
    try:
        binary = compiled(text, options, torch.cuda.get_device_capability(device))
        return Program(binary, "decode", given["SLOT"] * given["SLOTS"])
    except (OSError, ArgumentError, RuntimeError) as error:
        _log.warning("One sequence is decoded by several kernels a layer: %s", error)
        return None


def _fields(model: GPT, caches: list[tuple[Tensor, Tensor]], device: torch.device) -> Tensor:
    """Return the addresses of each layer, in the order of `Field` in `shapes.cuh`."""
    lines = []
    for layer, (block, pair) in enumerate(zip(model.blocks(), caches, strict=True)):
        attn, mlp = block.attn, block.mlp
        linears = (attn.q, attn.k, attn.v, attn.out, mlp.up, mlp.gate, mlp.down)
        norms = (block.attn_norm, block.mlp_norm, attn.q_norm, attn.k_norm)
        found = [_address(each) for each in (*linears, *norms)]
        found += [each.data_ptr() for each in pair]
        lines.append([*found, model.config.window_of(layer) or _ALL])
    return torch.tensor(lines, dtype=torch.int64, device=device)


def _address(module: nn.Module | None) -> int:
    weight = None if module is None else module.weight
    return weight.data_ptr() if isinstance(weight, Tensor) else 0
