"""Run by a test under Triton's interpreter: attention in one kernel against the plain path."""

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
            each.copy_(0.5 * torch.randn(each.shape))


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
    weights = torch.linspace(-1, 1, out.numel()).view(out.shape)
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


def bfloat16() -> float:
    qkv, bias = torch.randn(1, 8, 8, 3 * 2 * 16), torch.randn(2, 16, 16)
    found = attend_shifted(qkv.bfloat16(), bias, 4, 2, 0.25)
    wanted = attend_shifted(qkv.bfloat16().float(), bias, 4, 2, 0.25)
    # Two roundings to 8 bits.
    return apart([found.float()], [wanted]) / 1000


def model(name: str) -> float:
    """As part of a whole model, compiled as one graph."""
    shape = {"image_size": 16, "embed_dim": 16, "depths": (2, 1), "heads": (1, 2)}
    whole = create_model(name, **shape)
    filled(whole)
    images = torch.randn(2, 3, 16, 16)
    given = list(whole.parameters())
    plain = with_gradients(whole(images), *given)
    with patch.object(_window_attention, "kernel_fits", lambda *_: True):
        compiled = torch.compile(whole, backend="aot_eager", fullgraph=True)
        return apart(with_gradients(compiled(images), *given), plain)


# Some programs have several windows, and the last fewer.
_triton_windows._PROGRAMS, _triton_windows._PROGRAMS_BACK = 3, 4
torch.manual_seed(0)
CASES = {
    "49 tokens": lambda: attention(WindowAttention, 2, 16, 7, (1, 14, 14), 3),
    "49 tokens, not shifted": lambda: attention(WindowAttention, 1, 32, 7, (2, 7, 7), 0),
    "not square": lambda: attention(WindowAttention, 3, 16, 3, (2, 6, 9), 1),
    "cosines": lambda: attention(CosineWindowAttention, 2, 16, 4, (1, 8, 8), 2),
    "bfloat16": bfloat16,
    "model": lambda: model("swin_cifar"),
    "model, cosines": lambda: model("swinv2_cifar"),
}
found = {name: each() for name, each in CASES.items()}
qkv = torch.randn(1, 4, 4, 96, requires_grad=True)
bias = torch.randn(2, 4, 4).transpose(1, 2).requires_grad_()
torch.library.opcheck(attend_shifted, (qkv, bias, 2, 1, 0.25))
print(found)
wrong = {name: each for name, each in found.items() if not each < 1e-5}
print(f"{len(found)} cases, wrong: {wrong}")
sys.exit(bool(wrong))
