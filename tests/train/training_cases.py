"""Small runs that the tests of the loop share."""

import threading

import torch
from torch import nn

from hotgrid.train import TensorBatches, Trainer

# Ranks in threads share the generator.
_SEEDED = threading.Lock()


def data(rows: int = 48, dtype: torch.dtype = torch.float64):
    generator = torch.Generator().manual_seed(5)
    x = torch.randn(rows, 6, generator=generator, dtype=dtype)
    return x, (x[:, :2].sin() + 0.1 * x[:, 2:4])


def net(dtype: torch.dtype = torch.float64, dropout: float = 0.0) -> nn.Module:
    with _SEEDED:
        torch.manual_seed(0)
        layers = [nn.Linear(6, 9), nn.Tanh(), nn.Dropout(dropout), nn.Linear(9, 2)]
    return nn.Sequential(*layers).to(dtype)


def loss(module, batch):
    return (module(batch[0]) - batch[1]).square().mean()


def weighted(module, batch):
    """The same loss as a mean over the items of the batch, with their count."""
    found = (module(batch[0]) - batch[1]).square().mean(1)
    return {"loss": found.mean(), "count": float(len(found))}


def sgd(module):
    return torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9)


def trainer(module=None, *, size=8, step=loss, steps=10, optimizer=sgd, **options) -> Trainer:
    source = options.pop("source", None) or TensorBatches(data(), size, seed=1)
    options = {"log_every": 1, "show": False, **options}
    return Trainer(module or net(), step, source, optimizer, steps=steps, **options)


def weights(module) -> torch.Tensor:
    full = [getattr(p, "full_tensor", lambda p=p: p)() for p in module.parameters()]
    return torch.cat([p.detach().flatten() for p in full])
