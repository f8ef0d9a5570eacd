"""The oracle of top-k: sort everything, keep the first k."""

import torch
from torch import Tensor

# What torch.sort does not sort on every device, or sorts wrongly (bfloat16 with NaN on CUDA,
# torch 2.11), and a type that has the same order.
_SORTED_AS = {
    torch.bfloat16: torch.float32,
    torch.uint16: torch.int32,
    torch.uint32: torch.int64,
}
_TOP_BIT = torch.iinfo(torch.int64).min


def reference(
    x: Tensor, k: int, dim: int, largest: bool, sorted: bool
) -> tuple[Tensor, Tensor]:
    """Return the k first of a stable sort: equal values keep the order of their indices.

    NaN counts as larger than everything, as in torch. The result is in order even where
    `sorted` does not ask for it.
    """
    wide = x.dtype == torch.uint64
    keys = x.view(torch.int64) ^ _TOP_BIT if wide else x.to(_SORTED_AS.get(x.dtype, x.dtype))
    keys, indices = torch.sort(keys, dim=dim, descending=largest, stable=True)
    keys, indices = keys.narrow(dim, 0, k), indices.narrow(dim, 0, k).contiguous()
    values = (keys ^ _TOP_BIT).view(torch.uint64) if wide else keys.to(x.dtype)
    return values.contiguous(), indices
