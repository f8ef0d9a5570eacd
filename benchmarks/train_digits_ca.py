"""Train the network of `hotgrid.grid.neural.DigitsCA`: cells that agree on a drawn digit.

    python benchmarks/train_digits_ca.py --device cuda --out digits_ca.safetensors

Stops after `--minutes` or `--iterations`, writes the network, and prints the share of digits
that were not seen in training and that most of their cells read right.
"""

import time
from pathlib import Path

import torch
from options import parser
from torch import Tensor

from hotgrid.grid import rollout
from hotgrid.grid.neural import CellNetwork, DigitsCA, drawn_digits

CHANNELS, CLASSES = 20, 10


def begun(count: int, draw: torch.Generator, device: str) -> tuple[dict[str, Tensor], Tensor]:
    """States of single digits, batch first, and what they are."""
    pictures, digits = drawn_digits(count, draw)
    cells = torch.zeros(count, CHANNELS, *pictures.shape[1:])
    cells[:, 0] = pictures
    numbers = torch.randint(1, 2**31 - 1, pictures.shape, generator=draw, dtype=torch.int32)
    return {"cells": cells.to(device), "random": numbers.to(device)}, digits.to(device)


def loss_of(cells: Tensor, digits: Tensor) -> Tensor:
    """The cross entropy of beliefs, mean over ink, and a little of their square difference.

    The second keeps beliefs from growing without end in long runs.
    """
    ink = (cells[:, 0] > 0.1).to(cells)
    beliefs = cells[:, -CLASSES:]
    wanted = digits[:, None, None].expand(-1, *ink.shape[1:])
    off = torch.nn.functional.cross_entropy(4 * beliefs, wanted, reduction="none")
    one = torch.nn.functional.one_hot(digits, CLASSES)[:, :, None, None]
    off = off + 0.2 * (beliefs - one).square().sum(1)
    return ((off * ink).sum((1, 2)) / ink.sum((1, 2))).mean()


def read_right(cells: Tensor, digits: Tensor) -> tuple[float, float]:
    """The share of cells with ink that are right, and of digits most of whose cells are."""
    found = cells[:, -CLASSES:].argmax(1)
    ink = cells[:, 0] > 0.1
    right = (found == digits[:, None, None]) & ink
    counts = torch.stack([((found == k) & ink).sum((1, 2)) for k in range(CLASSES)], 1)
    most = (counts.argmax(1) == digits).float().mean()
    return (right.sum() / ink.sum()).item(), most.item()


def trained(options) -> None:
    torch.manual_seed(0)
    device, draw = options.device, torch.Generator().manual_seed(1)
    network = CellNetwork.random(CHANNELS, options.hidden, scale=0.05)
    network.output[0] = 0
    if options.start:
        network = CellNetwork.load(options.start)
    network = network.to(device)
    weights = list(network.tensors().values())
    for x in weights:
        x.requires_grad_()
    start = Path(options.out).with_suffix(".start")
    network.save(start)
    model = DigitsCA(str(start)).with_network(network)
    start.unlink()
    best = torch.optim.Adam(weights, lr=options.rate)
    begin, i = time.perf_counter(), 0
    old: tuple[dict[str, Tensor], Tensor] | None = None
    for i in range(options.iterations):
        spent = time.perf_counter() - begin
        share = max(spent / (60 * options.minutes), i / options.iterations)
        if share >= 1:
            break
        for group in best.param_groups:
            group["lr"] = options.rate * (1.0 if share < 0.5 else 0.3 if share < 0.8 else 0.1)
        states, digits = begun(options.batch, draw, device)
        if old is not None:
            # Half of them are older: what was read must stay so. Of these some get another
            # picture under old beliefs.
            half = options.batch // 2
            kept, known = old
            for name, x in states.items():
                fresh = x[half : half + half // 4].clone()
                x[half:] = kept[name][:half].to(x)
                if name == "cells":
                    x[half : half + half // 4, 0] = fresh[:, 0]
                    x[half : half + half // 4, 1:] *= (fresh[:, :1] > 0.1).to(x)
            digits = torch.cat([digits[: half + half // 4], known[half // 4 : half]])
        later, loss = states, torch.zeros((), device=device)
        for _ in range(2):
            later = rollout(
                model, later, options.steps, batch=options.batch, compiled=options.compiled
            )
            loss = loss + loss_of(later["cells"], digits)
        best.zero_grad()
        loss.backward()
        with torch.no_grad():
            for x in weights:
                if x.grad is None:
                    continue
                # Ink stays as it was drawn.
                if x is network.output or x is network.output_bias:
                    x.grad[0] = 0
                x.grad /= x.grad.norm() + 1e-8
        best.step()
        shuffled = torch.randperm(options.batch, generator=draw).to(device)
        old = {k: x.detach()[shuffled] for k, x in later.items()}, digits[shuffled]
        if i % 50 == 0:
            cells, most = read_right(later["cells"].detach(), digits)
            print(f"  {i}: {loss.item():.4f}, cells {cells:.3f}, digits {most:.3f}, "
                  f"{spent:.0f} s", flush=True)  # fmt: skip
            network.save(options.out)
    network.save(options.out)
    print(f"{i} iterations in {time.perf_counter() - begin:.0f} s, kept in {options.out}")


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--out", default="digits_ca.safetensors")
    options.add_argument("--start", default="", help="go on from this network")
    options.add_argument("--minutes", type=float, default=2.5)
    options.add_argument("--iterations", type=int, default=100_000)
    options.add_argument("--hidden", type=int, default=96)
    options.add_argument("--batch", type=int, default=64)
    options.add_argument("--steps", type=int, default=16)
    options.add_argument("--rate", type=float, default=2e-3)
    options.add_argument("--plain", dest="compiled", action="store_false")
    given = options.parse_args()
    trained(given)
    model = DigitsCA(given.out)
    states, digits = begun(1000, torch.Generator().manual_seed(99), given.device)
    with torch.no_grad():
        model = model.placed(torch.device(given.device), torch.float32)
        for steps in (20, 20, 160):
            states = rollout(model, states, steps, batch=1000)
            cells, most = read_right(states["cells"], digits)
            print(f"{steps} steps further: cells {cells:.4f}, digits {most:.4f}")


if __name__ == "__main__":
    main()
