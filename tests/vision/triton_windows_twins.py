"""Run by a test under Triton's interpreter: attention in one kernel against the plain path.

With `compiled` as its argument it is part of a model that is compiled as one graph.
"""

import sys
from unittest.mock import patch

import torch
from torch import Tensor

from hotgrid.vision import (
    CosineWindowAttention,
    WindowAttention,
    create_model,
    shift_mask,
    window_partition,
)
from hotgrid.vision._layers import _triton_windows, _window_attention
from hotgrid.vision._layers._shifted_windows import attend_shifted


def filled(module: torch.nn.Module) -> None:
    with torch.no_grad():
        for each in module.parameters():
            each.copy_(0.2 * torch.randn(each.shape))


def mask_of(height: int, width: int, window: int, shift: int) -> Tensor | None:
    if not shift:
        return None
    if height == width:
        return shift_mask(height, window, shift)
    rows = (torch.arange(height) >= height - shift).long()
    columns = (torch.arange(width) >= width - shift).long()
    regions = window_partition((2 * rows[:, None] + columns)[None, :, :, None], window)
    regions = regions.flatten(1)
    return torch.where(regions[:, :, None] == regions[:, None, :], 0.0, -100.0)


def with_gradients(out: Tensor, *given: Tensor) -> list[Tensor]:
    weights = torch.randn(out.shape, generator=torch.Generator().manual_seed(1))
    return [out, *torch.autograd.grad((out * weights).sum(), given)]


def apart(ours: list[Tensor], plain: list[Tensor]) -> float:
    pairs = zip(ours, plain, strict=True)
    return max(((a - b).abs().max() / b.abs().max()).item() for a, b in pairs)


def attention(make, heads: int, size: int, window: int, shape: tuple[int, ...], shift: int):
    """How far the kernel is from the plain path: values, and gradients of all parameters."""
    layer = make(heads * size, heads, window, fused=False)
    filled(layer)
    x = torch.randn(*shape, heads * size, requires_grad=True)
    given = (x, *layer.parameters())
    mask = mask_of(shape[1], shape[2], window, shift)
    plain = layer(x.roll((-shift, -shift), (1, 2)), mask).roll((shift, shift), (1, 2))
    return apart(with_gradients(layer.shifted(x, shift), *given), with_gradients(plain, *given))


def half() -> float:
    """In float16; the interpreter has no products of bfloat16."""
    qkv, bias = torch.randn(1, 4, 4, 3 * 2 * 16).half().requires_grad_(), torch.randn(2, 4, 4)
    given = qkv, bias.requires_grad_()
    found = with_gradients(attend_shifted(*given, 2, 1, 0.25), *given)
    wide = qkv.float(), bias
    wanted = with_gradients(attend_shifted(*wide, 2, 1, 0.25), *wide)
    # Numbers and probabilities are rounded to 11 bits.
    return apart(found, wanted) / 500


def model(name: str, **compiled) -> float:
    """As part of a whole model, compiled as one graph or not."""
    shape = {"image_size": 16, "embed_dim": 32, "depths": (2,), "heads": (2,)}
    whole = create_model(name, **shape)
    filled(whole)
    images = torch.randn(2, 3, 16, 16)
    given = list(whole.parameters())
    plain = with_gradients(whole(images), *given)
    with patch.object(_window_attention, "kernel_fits", lambda *_: True):
        ours = torch.compile(whole, **compiled)(images)
        return apart(with_gradients(ours, *given), plain)


# Some programs have several windows, and the last fewer.
_triton_windows._PROGRAMS, _triton_windows._PROGRAMS_BACK = 3, 4
torch.manual_seed(0)
CASES = {
    "49 tokens": lambda: attention(WindowAttention, 2, 16, 7, (1, 14, 14), 3),
    "49 tokens, not shifted": lambda: attention(WindowAttention, 1, 32, 7, (2, 7, 7), 0),
    "not square": lambda: attention(WindowAttention, 3, 16, 3, (2, 6, 9), 1),
    "cosines": lambda: attention(CosineWindowAttention, 2, 16, 4, (1, 8, 8), 2),
    "float16": half,
    "model, cosines": lambda: model("swinv2_cifar", disable=True),
}
if sys.argv[1:] == ["compiled"]:
    CASES = {"model": lambda: model("swin_cifar", backend="aot_eager", fullgraph=True)}
found = {name: each() for name, each in CASES.items()}
qkv = torch.randn(1, 4, 4, 96, requires_grad=True)
bias = torch.randn(2, 4, 4).transpose(1, 2).requires_grad_()
torch.library.opcheck(attend_shifted, (qkv, bias, 2, 1, 0.25))
print(found)
wrong = {name: each for name, each in found.items() if not each < 1e-5}
print(f"{len(found)} cases, wrong: {wrong}")
sys.exit(bool(wrong))
