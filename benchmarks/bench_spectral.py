"""Claim: a spectral step takes at most 1.2 times as long as its Fourier transforms alone.

Each model runs compiled, in float32, from its own start. The transforms of one step are noted
with their inputs, and then made again without anything between them: as `torch.fft` makes
them by default (`ratio`), and as the step does, whose inverse ones divide by nothing
(`to unscaled`). Steps and transforms take turns, and the best time of each counts.
`NavierStokes` has a local step beside its transforms, so its ratio is of both. Without a GPU
`--threads 1` counts the time of the thread, which a busy machine does not change.

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

Transform = tuple[str, Tensor, dict[str, str]]
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
            noted.append((name, x.clone(), options))
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
    sim.run(6, progress=False)
    # A step that is recorded would note what is not in memory any more.
    noted = transforms_of(Simulation(make(), size=size, device=device, form="roll"))
    whole = Whole(size, device)

    def scaled() -> None:
        for name, x, _ in noted:
            getattr(whole, name)(x)

    def unscaled() -> None:
        for name, x, options in noted:
            getattr(whole, name)(x, **options)

    thread = device == "cpu" and torch.get_num_threads() == 1
    form = sim._form
    times = [
        [timed(call, thread=thread) for call in (lambda: form.run(1), scaled, unscaled)]
        for _ in range(rounds)
    ]
    best, alone, least = map(min, zip(*times, strict=True))
    return {
        "model": type(sim.model).__name__,
        "size": "x".join(map(str, size)),
        "form": form.name,
        "transforms": len(noted),
        "step ms": round(best * 1e3, 3),
        "transforms ms": round(alone * 1e3, 3),
        "ratio": round(best / alone, 2),
        "to unscaled": round(best / least, 2),
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
