"""One of two processes that train together; prints what it ends with as JSON.

python training_worker.py RANK FILE
"""

import json
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh

from hotgrid.cluster import (
    GroupCommunicator,
    all_reduce,
    data_parallel,
    fully_sharded,
    rank_seed,
    shard_of,
)
from hotgrid.errors import ArgumentError

ITEMS, STEPS = 12, 3


def model(seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 2)).double()


def data() -> tuple[torch.Tensor, torch.Tensor]:
    x = torch.linspace(-1, 1, 3 * ITEMS, dtype=torch.float64).reshape(ITEMS, 3)
    return x, x[:, :2].sin()


def train(module: nn.Module, rank: int, size: int) -> None:
    """A few steps on the own share of the data; on one rank of one, on all of it."""
    x, y = data()
    optimizer = torch.optim.SGD(module.parameters(), lr=0.5)
    for epoch in range(STEPS):
        mine = shard_of(ITEMS, rank, size, epoch=epoch)
        optimizer.zero_grad()
        (module(x[mine]) - y[mine]).square().mean().backward()
        optimizer.step()


def values(module: nn.Module) -> list[float]:
    full = [getattr(p, "full_tensor", lambda p=p: p)() for p in module.parameters()]
    return torch.cat([p.detach().flatten() for p in full]).tolist()


def main(rank: int, file: str) -> None:
    dist.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=2)
    communicator = GroupCommunicator(dist.group.WORLD)
    mesh = init_device_mesh("cpu", (1, 2), mesh_dim_names=("copies", "data"))
    found = {}

    # Rank 1 begins with other parameters and must get those of rank 0.
    for name, ranks in {"ddp": communicator, "ddp by axis": mesh["data"]}.items():
        copy = model(seed=rank)
        train(data_parallel(copy, ranks), rank, 2)
        found[name] = values(copy)

    for name, ranks in {"fsdp": communicator, "fsdp by mesh": mesh}.items():
        whole = fully_sharded(model(), ranks, layers=nn.Linear)
        found[f"{name} local"] = sum(p.to_local().numel() for p in whole.parameters())
        train(whole, rank, 2)
        found[name] = values(whole)

    low = fully_sharded(model(), communicator, compute=torch.bfloat16)
    found["computes in"] = str(low(data()[0]).dtype)

    try:
        data_parallel(model(), mesh)
    except ArgumentError as error:
        found["two axes"] = str(error)

    x = torch.tensor([1.0 + rank], requires_grad=True)
    all_reduce(x.square(), communicator).sum().backward()
    found["all_reduce"] = x.grad.item()
    found["seed"] = rank_seed(0, communicator.rank)
    print(json.dumps(found))
    dist.destroy_process_group()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
