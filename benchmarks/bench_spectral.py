"""Claim: a spectral step takes at most 1.2 times as long as its Fourier transforms alone.

Each model runs compiled, in float32, from its own start. The transforms of one step are noted
with their inputs, and then made again without anything between them. Steps and transforms take
turns, and the best time of each counts. `NavierStokes` has a local step beside its transforms,
so its ratio is of both. Without a GPU `--threads 1` counts the time of the thread, which a busy
machine does not change.

    python benchmarks/bench_spectral.py [--device cuda] [--threads 1] [--rounds 20]
"""

import time
from collections.abc import Callable
from unittest import mock

import torch
from options import parser
from report import once, report
from torch import Tensor

from hotgrid.grid import Model, Simulation, Whole, pde

Transform = tuple[str, Tensor]
CASES: dict[str, list[tuple[Callable[[], Model], tuple[int, ...]]]] = {
    "cpu": [
        (pde.KuramotoSivashinsky, (1 << 18,)),
        (pde.KuramotoSivashinsky, (512, 512)),
        (pde.Vorticity, (512, 512)),
        (pde.Vorticity, (1024, 1024)),
        (pde.NavierStokes, (512, 512)),
        (lambda: pde.NavierStokes(dims=3), (96, 96, 96)),
    ],
    "cuda": [
        (pde.KuramotoSivashinsky, (1 << 24,)),
        (pde.KuramotoSivashinsky, (4096, 4096)),
        (pde.Vorticity, (1024, 1024)),
        (pde.Vorticity, (4096, 4096)),
        (pde.NavierStokes, (4096, 4096)),
        (lambda: pde.NavierStokes(dims=3), (256, 256, 256)),
    ],
}


def transforms_of(sim: Simulation) -> list[Transform]:
    """The transforms that one step makes, with their inputs."""
    noted: list[Transform] = []

    def noting(name: str) -> Callable[[Whole, Tensor], Tensor]:
        plain = getattr(Whole, name)

        def transform(whole: Whole, x: Tensor, **options: str) -> Tensor:
            noted.append((name, x.clone()))
            return plain(whole, x, **options)

        return transform

    with mock.patch.multiple(Whole, rfft=noting("rfft"), irfft=noting("irfft")):
        sim.run(1, progress=False)
    return noted


def timed(call: Callable[[], object], *, thread: bool) -> float:
    if not thread:
        return once(call)
    begin = time.thread_time()
    call()
    return time.thread_time() - begin


def measured(
    make: Callable[[], Model], size: tuple[int, ...], device: str, rounds: int
) -> dict:
    sim = Simulation(make(), size=size, device=device)
    sim.run(3, progress=False)
    noted, whole = transforms_of(sim), Whole(size, device)

    def transforms() -> None:
        for name, x in noted:
            getattr(whole, name)(x)

    thread = device == "cpu" and torch.get_num_threads() == 1
    steps, alone = [], []
    for _ in range(rounds):
        steps.append(timed(lambda: sim._form.run(1), thread=thread))
        alone.append(timed(transforms, thread=thread))
    best, least = min(steps), min(alone)
    return {
        "model": type(sim.model).__name__,
        "size": "x".join(map(str, size)),
        "transforms": len(noted),
        "step ms": round(best * 1e3, 3),
        "transforms ms": round(least * 1e3, 3),
        "ratio": round(best / least, 2),
    }


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--threads", type=int, help="default: as torch has them")
    options.add_argument("--rounds", type=int, default=20)
    chosen = options.parse_args()
    if chosen.threads:
        torch.set_num_threads(chosen.threads)
    rows = [
        measured(make, size, chosen.device, chosen.rounds)
        for make, size in CASES[chosen.device]
    ]
    report(
        f"spectral-{chosen.device}",
        rows,
        torch=torch.__version__,
        threads=torch.get_num_threads(),
    )


if __name__ == "__main__":
    main()
