"""How fast one device multiplies matrices: the limit of kernels that compute more than move."""

from functools import cache

import torch

from ._sampling import clock_of

_CPU_SIDE, _CUDA_SIDE = 1024, 8192
_REPEATS = 5


@cache
def matmul_peak(device: str, dtype: str = "float32") -> float:
    """Return the flops a second of a large matrix product, measured once per process.

    Args:
        device: `cpu` or `cuda:N`.
        dtype: The type of both matrices, such as `float32`.

    Example:
        >>> matmul_peak("cpu") > 1e6
        True
    """
    place = torch.device(device)
    side = _CUDA_SIDE if place.type == "cuda" else _CPU_SIDE
    a = torch.ones(side, side, dtype=getattr(torch, dtype), device=place)
    product = torch.empty_like(a)
    clock = clock_of(place)
    fastest = min(clock(lambda: torch.mm(a, a, out=product)) for _ in range(_REPEATS))
    return 2 * side**3 / fastest
