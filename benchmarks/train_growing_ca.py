"""Train the network of `hotgrid.grid.neural.GrowingCA`: to grow a flower, and to heal it.

    python benchmarks/train_growing_ca.py --device cuda --out growing_ca.safetensors

Stops after `--minutes` or `--iterations`, writes the network, and prints the regrowth score:
the mean square difference to the picture after growing, after a cut and after healing.
"""

import math
import time
from pathlib import Path

import torch
from options import parser
from torch import Tensor

from hotgrid.grid import Simulation, rollout
from hotgrid.grid.neural import CellNetwork, GrowingCA, SamplePool

CHANNELS = 16
# Numbers beyond it are pulled back: cells must not run away in long runs.
BOUND = 2.0


def losses(cells: Tensor, target: Tensor) -> Tensor:
    """The mean square difference of each run to the picture."""
    return (cells[:, :4] - target).square().mean((1, 2, 3))


def damaged(cells: Tensor, draw: torch.Generator) -> Tensor:
    """Cells with a disc or a half-plane cleared in each run."""
    runs, _, rows, columns = cells.shape
    y = torch.linspace(-1, 1, rows)[None, :, None]
    x = torch.linspace(-1, 1, columns)[None, None, :]
    numbers = torch.rand(4, runs, 1, 1, generator=draw)
    centre, radius = numbers[:2] - 0.5, 0.15 + 0.25 * numbers[2]
    disc = (y - centre[0]).square() + (x - centre[1]).square() < radius.square()
    angle = 2 * math.pi * numbers[3]
    half = y * angle.sin() + x * angle.cos() > 0.2 * centre[0]
    which = torch.rand(runs, 1, 1, generator=draw) < 0.5
    return cells * (~torch.where(which, disc, half)).to(cells)[:, None]


def trained(options) -> GrowingCA:
    torch.manual_seed(0)
    device, draw = options.device, torch.Generator().manual_seed(1)
    network = CellNetwork.random(CHANNELS, options.hidden, scale=0.0)
    if options.start:
        network = CellNetwork.load(options.start)
    network = network.to(device)
    weights = list(network.tensors().values())
    for x in weights:
        x.requires_grad_()
    start = Path(options.out).with_suffix(".start")
    network.save(start)
    model = GrowingCA(str(start)).with_network(network)
    start.unlink()
    side = GrowingCA.tile
    target = model.target((side, side)).to(device)
    seed = model.initial((side, side), torch.Generator().manual_seed(2))
    seed = {name: x.to(device) for name, x in seed.items()}
    pool = SamplePool(seed, options.pool)
    # Every state has random numbers of its own.
    numbers = pool.states["random"]
    numbers.copy_(torch.randint_like(numbers, 1, 2**31 - 1))
    best = torch.optim.Adam(weights, lr=options.rate, betas=(0.9, 0.95))
    begin, i = time.perf_counter(), 0
    for i in range(options.iterations):
        spent = time.perf_counter() - begin
        share = max(spent / (60 * options.minutes), i / options.iterations)
        if share >= 1:
            break
        for group in best.param_groups:
            group["lr"] = options.rate * (1.0 if share < 0.5 else 0.3 if share < 0.8 else 0.1)
        places, states = pool.draw(options.batch)
        with torch.no_grad():
            order = losses(states["cells"], target).argsort(descending=True)
            places = places[order.cpu()]
            states = {name: x[order] for name, x in states.items()}
            states["cells"][0] = seed["cells"]
            hurt = options.batch // 3 if share > 0.15 else 0
            if hurt:
                states["cells"][-hurt:] = damaged(states["cells"][-hurt:].cpu(), draw).to(
                    device
                )
        steps = int(torch.randint(options.steps // 2, options.steps, (), generator=draw))
        later = rollout(
            model, states, steps, batch=options.batch, remat=options.remat,
            compiled=options.compiled,
        )  # fmt: skip
        cells = later["cells"]
        each = losses(cells, target)
        beyond = (cells - cells.clamp(-BOUND, BOUND)).abs().mean()
        loss = each.mean() + beyond
        best.zero_grad()
        loss.backward()
        with torch.no_grad():
            for x in weights:
                if x.grad is not None:
                    x.grad /= x.grad.norm() + 1e-8
        best.step()
        if loss.isfinite():
            pool.put(places, later)
        if i % 100 == 0:
            print(f"  {i}: {each.mean():.5f} after {spent:.0f} s", flush=True)
            network.save(options.out)
    for x in weights:
        x.requires_grad_(False)
    model.network.save(options.out)
    print(f"{i} iterations in {time.perf_counter() - begin:.0f} s, kept in {options.out}")
    return model


def score(path: str, device: str) -> dict[str, float]:
    """The difference to the picture: grown, at once after a cut, healed, and much later."""
    model, side = GrowingCA(path), GrowingCA.tile
    target = model.target((side, side))
    sim = Simulation(model, size=(side, side), device=device, compiled=False)

    def off() -> float:
        return (sim.state["cells"][:4].cpu() - target).square().mean().item()

    found = {}
    sim.run(160, progress=False)
    found["grown"] = off()
    mask = torch.zeros(side, side, dtype=torch.bool)
    mask[: side // 2] = True
    sim.paint("erase", mask.to(device), 1)
    found["cut"] = off()
    sim.run(200, progress=False)
    found["healed"] = off()
    sim.run(1000, progress=False)
    found["later"] = off()
    return found


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--out", default="growing_ca.safetensors")
    options.add_argument("--start", default="", help="go on from this network")
    options.add_argument("--minutes", type=float, default=2.5)
    options.add_argument("--iterations", type=int, default=100_000)
    options.add_argument("--hidden", type=int, default=96)
    options.add_argument("--batch", type=int, default=12)
    options.add_argument("--pool", type=int, default=512)
    options.add_argument("--steps", type=int, default=80, help="at most so many in a rollout")
    options.add_argument("--rate", type=float, default=2e-3)
    options.add_argument("--remat", type=int, default=None)
    options.add_argument("--plain", dest="compiled", action="store_false")
    given = options.parse_args()
    trained(given)
    found = score(given.out, given.device)
    print("regrowth: " + ", ".join(f"{name} {value:.5f}" for name, value in found.items()))


if __name__ == "__main__":
    main()
