"""Claim: a step of our Muon is at least as fast as torch's own and as nanochat's.

The matrices of a GPT of 12 layers and width 768 (four of 768x768, one of 3072x768 and one of
768x3072 each), float32 parameters, iterations in bfloat16. Each peer runs against our Muon with
the peer's settings: torch.optim.Muon is Newton-Schulz; nanochat is Polar Express with rows
equilibrated, norms reset, NorMuon and cautious decay. First both make the same three steps, and
the difference between them must be one of rounding; then they take turns, and the best time of
each counts. Both get gradients that are there already: on one device nothing is sent.

nanochat is not a package, and not part of hotgrid: give its file `nanochat/optim.py`.

    python benchmarks/bench_muon.py [--nanochat optim.py] [--layers 12] [--width 768]
"""

import importlib.util
import os
import sys
import time
import types
from collections.abc import Callable
from pathlib import Path

import torch
from options import parser
from report import absent, report
from torch import Tensor, nn

from hotgrid.train import Muon, groups

RATE, DECAY, MOMENTUM = 0.02, 0.1, 0.95
# Of the way that three steps go. bfloat16 rounds to 0.4 %, and errors of iterations add up.
TOLERANCE = 0.05
Step = Callable[[], None]


class Matrices(nn.Module):
    """The matrices of a GPT, and gradients for them."""

    def __init__(self, layers: int, width: int, device: str) -> None:
        super().__init__()
        generator = torch.Generator(device).manual_seed(0)
        shapes = [(width, width)] * 4 + [(4 * width, width), (width, 4 * width)]
        self.weights = nn.ParameterList(
            torch.randn(shape, device=device, generator=generator) * width**-0.5
            for _ in range(layers)
            for shape in shapes
        )

    def set_gradients(self, seed: int) -> None:
        """Put random gradients everywhere."""
        generator = torch.Generator(self.weights[0].device).manual_seed(seed)
        for p in self.weights:
            p.grad = torch.randn(p.shape, device=p.device, generator=generator)


def ours(model: Matrices, **settings: object) -> Step:
    spec = Muon(rate=RATE, decay=DECAY, momentum=MOMENTUM, compute="bfloat16", **settings)
    return groups(model, {}, rest=spec).step


def of_torch(model: Matrices) -> Step:
    found = torch.optim.Muon(
        list(model.weights), lr=RATE, weight_decay=DECAY, momentum=MOMENTUM
    )
    return found.step


def of_nanochat(path: Path) -> Callable[[Matrices], Step]:
    """Its optimizer, from one file: of the rest of nanochat that file wants only a dtype."""
    around = types.ModuleType("nanochat.common")
    vars(around)["COMPUTE_DTYPE"] = torch.bfloat16
    sys.modules.setdefault("nanochat", types.ModuleType("nanochat"))
    sys.modules["nanochat.common"] = around
    spec = importlib.util.spec_from_file_location("nanochat.optim", path)
    if spec is None or spec.loader is None:
        sys.exit(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    def make(model: Matrices) -> Step:
        alike: dict[torch.Size, list[Tensor]] = {}
        for p in model.weights:
            alike.setdefault(p.shape, []).append(p)
        return module.MuonAdamW([
            {
                "kind": "muon",
                "params": members,
                "lr": RATE,
                "momentum": MOMENTUM,
                "ns_steps": 5,
                "beta2": 0.9,
                # There decay grows with the rate of tall matrices; ours does not.
                "weight_decay": DECAY / max(1.0, shape[0] / shape[1]) ** 0.5,
            }
            for shape, members in alike.items()
        ]).step  # fmt: skip

    return make


def difference(
    model: Matrices, one: Callable[[Matrices], Step], two: Callable[[Matrices], Step]
) -> float:
    """Where both end after three steps, as a share of the way."""
    ends, start = [], [p.detach().clone() for p in model.weights]
    for contestant in (one, two):
        for p, was in zip(model.weights, start, strict=True):
            p.data.copy_(was)
        step = contestant(model)
        for seed in range(3):
            model.set_gradients(seed)
            step()
        ends.append([p.detach().clone() for p in model.weights])
    far = [
        ((a - b).norm() / (a - was).norm()).item()
        for a, b, was in zip(*ends, start, strict=True)
    ]
    return max(far)


def seconds(step: Step, device: str, calls: int) -> float:
    if device == "cuda":
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(calls):
            step()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) / 1e3 / calls
    started = time.perf_counter()
    for _ in range(calls):
        step()
    return (time.perf_counter() - started) / calls


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--nanochat", type=Path, help="the file nanochat/optim.py")
    options.add_argument("--layers", type=int, help="default: 12, on a CPU 2")
    options.add_argument("--width", type=int, help="default: 768, on a CPU 192")
    options.add_argument("--rounds", type=int, default=10)
    given = options.parse_args()
    on_gpu = given.device == "cuda"
    layers = given.layers or (12 if on_gpu else 2)
    width = given.width or (768 if on_gpu else 192)
    calls = 10 if on_gpu else 2

    peers: dict[str, tuple[Callable[[Matrices], Step], dict[str, object]]] = {}
    if hasattr(torch.optim, "Muon"):
        peers["torch.optim.Muon"] = (of_torch, {"method": "newton-schulz"})
    if given.nanochat is None:
        absent("nanochat", ValueError("no --nanochat given"))
    else:
        everything = {
            "variance": 0.9,
            "cautious": True,
            "equilibrate": True,
            "renormalise": True,
        }
        peers["nanochat"] = (of_nanochat(given.nanochat), everything)

    rows = []
    model = Matrices(layers, width, given.device)
    for name, (make, settings) in peers.items():
        far = difference(model, lambda m, s=settings: ours(m, **s), make)
        if not far < TOLERANCE:
            sys.exit(f"{name} ends {far:.3f} of the way from ours; nothing was timed")
        model.set_gradients(0)
        theirs, mine = make(model), ours(model, **settings)
        for step in (theirs, mine):
            step()
        best = {"theirs": float("inf"), "ours": float("inf")}
        for _ in range(given.rounds):
            best["theirs"] = min(best["theirs"], seconds(theirs, given.device, calls))
            best["ours"] = min(best["ours"], seconds(mine, given.device, calls))
        rows.append({
            "peer": name,
            "peer ms": round(best["theirs"] * 1e3, 3),
            "hotgrid ms": round(best["ours"] * 1e3, 3),
            "ratio": round(best["theirs"] / best["ours"], 2),
            "difference": round(far, 4),
        })  # fmt: skip
    report(
        f"muon-{given.device}",
        rows,
        torch=torch.__version__,
        device=torch.cuda.get_device_name() if on_gpu else "cpu",
        layers=layers,
        width=width,
        load=round(os.getloadavg()[0], 1),
    )


if __name__ == "__main__":
    main()
