"""One of two processes that train together; prints what it ends with as JSON.

python sharded_worker.py RANK FILE
"""

import json
import sys

import torch
import torch.distributed as dist
from torch import Tensor, nn

from hotgrid.cluster import GroupCommunicator, data_parallel, fully_sharded
from hotgrid.nn import Init, Query, initialize
from hotgrid.train import AdamW, Groups, Lion, Muon, OptimizerSpec, Warmup, groups

ITEMS = 8
RULES: dict[str | Query, str | Init] = {
    "//Param": Init("uniform", 0.1),
    "//Linear/*[@rank=2]": "orthogonal",
}


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(7, 16)
        self.proj = nn.Linear(16, 7)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.proj(self.fc(x).tanh())


class Gpt(nn.Module):
    """Odd sizes: seven rows cannot be cut evenly over two ranks."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.wte = nn.Embedding(ITEMS, 7)
        self.h = nn.ModuleList([Block(), Block()])
        self.mix = nn.Conv1d(7, 7, 3, padding=1)
        self.head = nn.Linear(7, 3)
        self.double()

    def forward(self, x: Tensor) -> Tensor:
        x = self.wte(x)
        for block in self.h:
            x = block(x)
        return self.head(self.mix(x[:, :, None])[:, :, 0])


def specs() -> dict[str, OptimizerSpec]:
    muon = Muon(
        rate=0.02 * Warmup(3), decay=0.1, variance=0.9, cautious=True, compute="float64",
        clip=2.0, name="matrices",
    )  # fmt: skip
    return {
        "Gpt/*[@name='h']//Param[@rank=2] | //Conv1d/*[@name='weight']": muon,
        "//*[@name='head']": Lion(rate=0.001, name="head"),
    }


def train(
    module: nn.Module, optimizer: Groups, steps: int, rank: int = 0, size: int = 1
) -> list:
    norms = []
    for step in range(steps):
        mine = torch.arange(ITEMS)[rank::size]
        optimizer.apply(step)
        optimizer.zero_grad()
        (module(mine) - mine[:, None] / ITEMS).square().mean().backward()
        norms.append([norm.item() for norm in optimizer.clip().values()])
        optimizer.step()
    return norms


def whole(tensor: Tensor) -> Tensor:
    return getattr(tensor, "full_tensor", lambda: tensor)().detach()


def values(module: nn.Module) -> Tensor:
    return torch.cat([whole(p).flatten() for p in module.parameters()])


def ended(module: nn.Module, optimizer: Groups, norms: list) -> dict:
    state = {key: whole(x).double().sum().item() for key, x in optimizer.state().items()}
    return {"values": values(module).tolist(), "state": state, "norms": norms}


def main(rank: int, file: str) -> None:
    dist.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=2)
    communicator = GroupCommunicator(dist.group.WORLD)
    found = {}
    rest = AdamW(rate=0.01, clip=1.0)
    for name, ranks in {"": None, " shared out": communicator}.items():
        model = Gpt()
        wrapped = data_parallel(model, communicator)
        optimizer = groups(wrapped, specs(), rest=rest, ranks=ranks)
        norms = train(wrapped, optimizer, 4, rank, 2)
        found[f"ddp{name}"] = ended(model, optimizer, norms)

        cut = fully_sharded(Gpt(), communicator, layers=Block)
        optimizer = groups(cut, specs(), rest=rest, ranks=ranks)
        norms = train(cut, optimizer, 4, rank, 2)
        found[f"fsdp{name}"] = ended(cut, optimizer, norms)
    found["bytes"] = sum(row.state_bytes for row in optimizer.rows())
    single = groups(Gpt(), specs(), rest=rest)
    found["whole bytes"] = sum(row.state_bytes for row in single.rows())

    kept = {key: x.clone() for key, x in optimizer.state().items()}
    gathered = {key: whole(x) for key, x in kept.items()}
    parameters = {key: x.clone() for key, x in cut.state_dict().items()}
    train(cut, optimizer, 2, rank, 2)
    found["straight"] = values(cut).tolist()
    for name, state in {"": kept, " from whole tensors": gathered}.items():
        again = fully_sharded(Gpt(), communicator, layers=Block)
        again.load_state_dict(parameters)
        optimizer = groups(again, specs(), rest=rest, ranks=communicator)
        optimizer.load(state)
        train(again, optimizer, 2, rank, 2)
        found[f"resumed{name}"] = values(again).tolist()

    cut = fully_sharded(Gpt(), communicator, layers=Block)
    initialize(cut, RULES, seed=3)
    found["initialized"] = values(cut).tolist()
    print(json.dumps(found))
    dist.destroy_process_group()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
