"""Claim: `attention` picks the kernel that is fastest for its mask, and all agree.

Forward and backward in bfloat16 for a causal mask, a window and packed documents, against SDPA
with a dense mask and flex_attention called by hand; and one token decoded from a cache, with a
CUDA graph where there is one. Every result is compared with float32 and a dense mask first.

    python benchmarks/bench_attention.py --device cuda
"""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from options import parser
from report import once, report
from torch import Tensor
from torch.nn.attention.flex_attention import flex_attention

from hotgrid.nn import Attention, KVCache, Mask, Rotary, attention

SIZES = {"cuda": (32, 6, 2048, 128), "cpu": (1, 2, 256, 32)}
LONG = {"cuda": (4, 6, 16384, 128), "cpu": (1, 2, 512, 32)}


def milliseconds(call: Callable[[], Any], repeats: int = 10) -> float:
    for _ in range(3):
        call()
    return round(min(once(call) for _ in range(repeats)) * 1e3, 3)


def masks(batch: int, length: int, device: str) -> dict[str, Mask]:
    documents = torch.arange(length, device=device).div(length // 5, rounding_mode="floor")
    documents = documents.expand(batch, -1).contiguous()
    return {
        "causal": Mask(),
        f"window {length // 4}": Mask(window=length // 4),
        "5 documents": Mask(documents=documents),
        f"both, window {length // 16}": Mask(window=length // 16, documents=documents),
    }


def trained(forward: Callable[..., Tensor], inputs: list[Tensor]) -> Callable[[], Any]:
    def call() -> Any:
        return torch.autograd.grad(forward(*inputs).sum(), inputs)

    return call


def one(size: tuple[int, ...], device: str) -> list[dict[str, Any]]:
    batch, _, length, _ = size
    torch.manual_seed(0)
    inputs = [torch.randn(size, device=device, dtype=torch.bfloat16) for _ in range(3)]
    inputs = [each.requires_grad_() for each in inputs]
    rows = []
    for name, mask in masks(batch, length, device).items():
        # Dynamo stops compiling a function that was compiled for several masks.
        torch._dynamo.reset()
        seen = mask.dense(length, length, 0, torch.device(device))
        q, k, v = (each[:1].float() for each in inputs)
        wanted = F.scaled_dot_product_attention(
            q, k, v, attn_mask=seen[:1] if seen.ndim == 4 else seen
        )
        error = (
            (attention(inputs[0], inputs[1], inputs[2], mask)[:1].float() - wanted)
            .abs()
            .max()
            .item()
        )
        row = {"shape": "x".join(map(str, size)), "mask": name, "largest error": f"{error:.1e}"}

        def ours(q: Tensor, k: Tensor, v: Tensor, mask: Mask = mask) -> Tensor:
            return attention(q, k, v, mask)

        def dense(q: Tensor, k: Tensor, v: Tensor, seen: Tensor = seen) -> Tensor:
            return F.scaled_dot_product_attention(q, k, v, attn_mask=seen)

        ways: dict[str, Callable[..., Tensor]] = {"attention": ours, "SDPA, dense": dense}
        if device == "cuda":
            blocks = mask.blocks(length, length, 0, torch.device(device))
            compiled = torch.compile(flex_attention)
            ways["flex"] = lambda q, k, v, b=blocks, f=compiled: f(q, k, v, block_mask=b)
        for way, forward in ways.items():
            with torch.no_grad():
                row[f"{way} ms"] = milliseconds(lambda f=forward: f(*inputs))
            row[f"{way} both ms"] = milliseconds(trained(forward, inputs))
        rows.append(row)
    return rows


def compiled_layer(device: str) -> list[dict[str, Any]]:
    """A whole layer in one graph, with new documents in every step as in training."""
    batch, heads, length, size = SIZES[device]
    made: dict[str, Any] = {"device": device, "dtype": torch.bfloat16}
    rotary = Rotary(size, length, device=device)
    layer = Attention(heads * size, heads, rotary=rotary, qk_norm="rms", **made)
    x = torch.randn(batch, length, heads * size, **made)
    compiled = torch.compile(layer, fullgraph=True)
    rows = []
    for name, mask in masks(batch, length, device).items():
        fresh = [Mask(mask.causal, mask.window, mask.documents) for _ in range(40)]
        error = (compiled(x, mask) - layer(x, mask)).abs().max().item()
        said = {"shape": f"layer {batch}x{length}x{heads * size}", "mask": name}
        rows.append(
            {
                **said,
                "largest error": f"{error:.1e}",
                "attention ms": milliseconds(lambda m=mask: layer(x, m)),
                "compiled ms": milliseconds(lambda f=fresh: compiled(x, f.pop())),
            }
        )
    return rows


@torch.no_grad()
def decoding(device: str) -> list[dict[str, Any]]:
    size, heads, length = (768, 6, 2048) if device == "cuda" else (64, 2, 256)
    rotary = Rotary(size // heads, length, device=device)
    made = {"device": device, "dtype": torch.bfloat16}
    layer = Attention(size, heads, rotary=rotary, qk_norm="rms_plain", **made)
    x = torch.randn(8, length // 2 + 1, size, **made)
    whole = layer(x)[:, -1:]
    rows = []

    def row(name: str, error: float, call: Callable[[], Any]) -> dict[str, Any]:
        said = {"shape": f"8x1 of {length // 2}", "mask": name}
        return {**said, "largest error": f"{error:.1e}", "attention ms": milliseconds(call)}

    for static in (False, True):
        cache = KVCache(8, heads, length, size // heads, static=static, **made)
        token = x[:, -1:].clone()

        def step(cache: KVCache = cache, token: Tensor = token) -> Tensor:
            if isinstance(cache.position, Tensor):
                cache.position.fill_(length // 2)
            else:
                cache.position = length // 2
            return layer(token, cache=cache)

        layer(x[:, :-1], cache=cache)
        error = (step() - whole).abs().max().item()
        rows.append(row("cache, static" if static else "cache, growing", error, step))
        if static and device == "cuda":
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                out = step()
            graph.replay()
            error = (out - whole).abs().max().item()
            rows.append(row("cache, static, CUDA graph", error, graph.replay))
    return rows


def main() -> None:
    device = parser(__doc__).parse_args().device
    rows = [
        *one(SIZES[device], device),
        *one(LONG[device], device),
        *compiled_layer(device),
        *decoding(device),
    ]
    report("attention", rows, device=device, torch=torch.__version__)


if __name__ == "__main__":
    main()
