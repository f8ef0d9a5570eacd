"""Claim: with denormal numbers as zero a step of a large grid on the CPU takes half the time.

Each model runs until its tails have become denormal. Then steps with and without are timed in
turns, `Form.run` against `Form.advance`, and the least time of each counts. Both start from the
same state, and what they end in must agree but for numbers below the smallest normal one.

    python benchmarks/bench_denormals.py
"""

import time

import torch
from options import parser
from report import report

from hotgrid.grid import Simulation, pde

SIZE = (1024, 1024)
WARM, STEPS, ROUNDS = 400, 100, 15
MODELS = {
    "gray-scott": pde.GrayScott,
    "heat": pde.Heat,
    "fitzhugh-nagumo": pde.FitzhughNagumo,
}


def row(name: str) -> dict[str, object]:
    sim = Simulation(MODELS[name](), size=SIZE, device="cpu")
    form = sim._form.settled()
    form.advance(WARM)
    start = {field: x.clone() for field, x in form.read().items()}
    seconds, ends = {}, {}
    for _ in range(ROUNDS):
        for way in (form.run, form.advance):
            form.load({field: x.clone() for field, x in start.items()})
            begin = time.perf_counter()
            way(STEPS)
            taken = (time.perf_counter() - begin) / STEPS
            seconds[way.__name__] = min(taken, seconds.get(way.__name__, taken))
            ends[way.__name__] = {field: x.clone() for field, x in form.read().items()}
    smallest = torch.finfo(torch.float32).tiny
    for field, x in ends["run"].items():
        # What is taken for zero in a step is spread and grows by later ones.
        torch.testing.assert_close(x, ends["advance"][field], rtol=1e-5, atol=smallest * 1e8)
    denormals = sum(
        int(((x != 0) & (x.abs() < smallest)).sum()) for x in ends["advance"].values()
    )
    return {
        "model": name,
        "denormals without": denormals,
        "without ms": round(seconds["advance"] * 1e3, 3),
        "with ms": round(seconds["run"] * 1e3, 3),
        "ratio": round(seconds["advance"] / seconds["run"], 2),
    }


if __name__ == "__main__":
    parser(__doc__, devices=("cpu",)).parse_args()
    rows = [row(name) for name in MODELS]
    report("denormals", rows, threads=torch.get_num_threads(), steps=WARM)
