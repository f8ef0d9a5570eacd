"""The random numbers of a rank: the state of every generator, as tensors."""

import random
import sys
from collections.abc import Mapping

import torch
from torch import Tensor

from hotgrid.cluster import rank_seed

_PYTHON_VERSION = 3


def seed_all(seed: int, rank: int) -> None:
    """Seed torch on every device, Python and NumPy, differently on each rank."""
    own = rank_seed(seed, rank)
    torch.manual_seed(own)
    random.seed(own)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(own % 2**32)


def random_state(device: torch.device) -> dict[str, Tensor]:
    """The state of all generators that a step function may use."""
    _, numbers, spare = random.getstate()
    found = {
        "cpu": torch.get_rng_state(),
        "python": torch.tensor(numbers, dtype=torch.int64),
        "python-spare": _spare(spare is not None, spare or 0.0),
    }
    if "numpy" in sys.modules:
        state = sys.modules["numpy"].random.get_state(legacy=False)
        inner = state["state"]
        keys = [*map(int, inner["key"]), int(inner["pos"])]
        found["numpy"] = torch.tensor(keys, dtype=torch.int64)
        found["numpy-spare"] = _spare(bool(state["has_gauss"]), state["gauss"])
    if device.type == "cuda":
        for index in _gpus(device):
            found[f"cuda-{index}"] = torch.cuda.get_rng_state(index)
    return found


def set_random_state(state: Mapping[str, Tensor], device: torch.device) -> None:
    """Set every generator to a state of `random_state`."""
    torch.set_rng_state(state["cpu"])
    has, spare = state["python-spare"].tolist()
    numbers = tuple(state["python"].tolist())
    random.setstate((_PYTHON_VERSION, numbers, spare if has else None))
    if "numpy" in state:
        import numpy as np

        *keys, position = state["numpy"].tolist()
        has, spare = state["numpy-spare"].tolist()
        np.random.set_state(  # noqa: NPY002  the global generator is what is restored
            ("MT19937", np.array(keys, np.uint32), position, int(has), spare)
        )
    if device.type == "cuda":
        for index in _gpus(device):
            if f"cuda-{index}" in state:
                torch.cuda.set_rng_state(state[f"cuda-{index}"], index)


def _spare(there: bool, value: float) -> Tensor:
    return torch.tensor([float(there), value], dtype=torch.float64)


def _gpus(device: torch.device) -> list[int]:
    """The GPUs of this process: its own where ranks share a host, else all."""
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return [torch.cuda.current_device() if device.index is None else device.index]
    return list(range(torch.cuda.device_count()))
