"""Claim: on a CPU, plain models run as fast as hand-written kernels.

Every case has one start; all contestants take the same steps from it and must agree
before anything is timed. Then they run in turns, and the best round of each counts. All
use one thread for each core that this process may use: `taskset -c 0,1` chooses two.

    python benchmarks/bench_grid_peers.py [--rounds N] [--seconds S] [WORD ...]

Words choose cases by name. Other libraries are in requirements-peers.txt (`make peers`); one
that is not installed or does not run has a row that says why.
"""

import importlib.metadata
import importlib.util
import math
import os
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import torch
from options import parser
from report import report

import hotgrid as hg
from hotgrid.kernels import copy_bandwidth

THREADS = len(os.sched_getaffinity(0))
VISCOSITY = 0.04
OMEGA = 1 / (3 * VISCOSITY + 0.5)


class Contestant(Protocol):
    """Something that takes steps and shows where it is."""

    def run(self, steps: int) -> None:
        """Take steps, and be done with them on return."""
        ...

    def read(self) -> np.ndarray:
        """The present state, in the layout of hotgrid."""
        ...


class Ours:
    """A simulation of hotgrid; `name` is the field that is compared."""

    def __init__(self, model, start: np.ndarray, name: str, size, **options) -> None:
        state = {name: torch.from_numpy(start)}
        self._sim = hg.Simulation(model, size=size, state=state, device="cpu", **options)
        self._name = name
        self.bytes_per_step = self._sim.bytes_per_step()

    def run(self, steps: int) -> None:
        """Take steps."""
        self._sim._form.run(steps)

    def warm_up(self) -> None:
        """Go on until nothing more is compiled, as in a run that takes its time."""
        form = self._sim._form
        while getattr(form, "_patience", math.inf) < math.inf:
            form.run(8)

    def read(self) -> np.ndarray:
        """The present state, in the layout of hotgrid."""
        return self._sim.state[self._name].numpy()


@dataclass
class Case:
    """One start, ours, and rivals by name; `tolerance` is the largest difference allowed."""

    name: str
    size: tuple[int, int]
    ours: Callable[[], Ours]
    rivals: Mapping[str, Callable[[], Contestant]]
    tolerance: float = 0.0
    steps: int = 20
    compared: np.ndarray | None = field(default=None, repr=False)


def peer(module: str, name: str, *args: Any, **options: Any) -> Callable[[], Contestant]:
    """Makes a rival when called, so that one that is missing is missed there."""
    return lambda: getattr(importlib.import_module(f"peers.{module}"), name)(*args, **options)


def fluid(size: tuple[int, int]) -> np.ndarray:
    """Populations `[9, y, x]` of a lively flow, shifted by their weights."""
    y, x = (np.arange(n) * 2 * np.pi / n for n in size)
    u = [0.05 * np.sin(3 * x)[None] * np.cos(2 * y)[:, None], 0.05 * np.cos(5 * x + y[:, None])]
    density = 1 + 0.01 * np.sin(4 * x + 3 * y[:, None])
    tensors = [torch.from_numpy(np.ascontiguousarray(part)) for part in (density, *u)]
    model = hg.lbm.Flow(start=lambda _size, _generator: (tensors[0], tensors[1:]))
    return model.initial(size, torch.Generator())["f"].float().numpy()


def discs(size: tuple[int, int]) -> np.ndarray:
    """Sixteen discs, a twentieth of the grid, none of them at an end."""
    y, x = np.mgrid[: size[0], : size[1]]
    spacing = size[0] // 4
    y, x = y % spacing - spacing / 2, x % spacing - spacing / 2
    return y**2 + x**2 < (spacing / 8) ** 2


def flow_case(name: str, size: tuple[int, int], kind: str = "", library: bool = True) -> Case:
    start = fluid(size)
    solid = discs(size) if kind else None
    walls = {"half-way": hg.lbm.HalfWay, "full-way": hg.lbm.FullWay}
    if solid is not None:
        start[:, solid] = 0
    boundaries = [walls[kind](torch.from_numpy(solid))] if kind else []
    model = hg.lbm.Flow(collision="bgk", boundaries=boundaries, viscosity=VISCOSITY)
    rivals = {"Numba": peer("numba_flow", "NumbaFlow", start, OMEGA, solid, kind)}
    if library and kind != "full-way":
        rivals["lbmpy"] = peer(
            "lbmpy_flow", "LbmpyFlow", start, OMEGA, solid, kind, threads=THREADS
        )
    if library and not kind:
        rivals["XLB"] = peer("xlb_flow", "XlbFlow", start, OMEGA)
        rivals["lettuce"] = lettuce
    return Case(
        name,
        size,
        lambda: Ours(model, start, "f", size),
        rivals,
        tolerance=1e-6,
        compared=None if solid is None else ~solid,
    )


def lettuce() -> Contestant:
    raise ImportError("comes from source only; its name on the index is another tool's")


def life_case(name: str, size: tuple[int, int]) -> Case:
    start = (np.random.default_rng(0).random(size) < 0.3).astype(np.uint8)
    rivals = {
        "Numba, 64-bit words": peer("numba_life", "NumbaLife", start),
        "CAX": peer("cax_life", "CaxLife", start),
    }
    return Case(name, size, lambda: Ours(hg.life.Life(), start, "cells", size), rivals)


def eager_case(name: str, model, size: tuple[int, int], compared: str, start=None) -> Case:
    """The same model without compiling: torch as it is commonly used."""
    if start is None:
        start = model.initial(size, torch.Generator().manual_seed(0))[compared].float().numpy()

    def ours(**options: Any) -> Ours:
        return Ours(model, start, compared, size, **options)

    eager = {"eager torch": lambda: ours(compiled=False)}
    return Case(name, size, ours, eager, tolerance=1e-6, steps=4)


def cases() -> list[Case]:
    big, middle = (2048, 2048), (1024, 1024)
    flow = hg.lbm.Flow(collision="bgk")
    return [
        flow_case("D2Q9 periodic", middle),
        flow_case("D2Q9 half-way solids", middle, "half-way"),
        flow_case("D2Q9 full-way solids", middle, "full-way"),
        flow_case("D2Q9 small", (64, 64), library=False),
        life_case("Life packed", big),
        eager_case("heat", hg.pde.Heat(), big, "u"),
        eager_case("Gray-Scott", hg.pde.GrayScott(), middle, "v"),
        eager_case("wave", hg.pde.Wave(), middle, "u"),
        eager_case("D2Q9 tensors", flow, middle, "f", fluid(middle)),
    ]


def seconds_per_step(
    contestants: Mapping[str, Contestant], rounds: int, seconds: float
) -> dict[str, float]:
    """The best of several rounds for each, all in turns."""
    counts = {name: _steps_in(c, seconds) for name, c in contestants.items()}
    best = dict.fromkeys(contestants, math.inf)
    for _ in range(rounds):
        for name, contestant in contestants.items():
            time.sleep(0.02)  # threads of the one before stop spinning
            begin = time.perf_counter()
            contestant.run(counts[name])
            taken = (time.perf_counter() - begin) / counts[name]
            best[name] = min(best[name], taken)
    return best


def _steps_in(contestant: Contestant, seconds: float) -> int:
    steps = 1
    while True:
        begin = time.perf_counter()
        contestant.run(steps)
        taken = time.perf_counter() - begin
        if taken > seconds / 4:
            return max(1, round(steps * seconds / taken))
        steps *= 2


def measured(case: Case, rounds: int, seconds: float, limit: float) -> list[dict]:
    print(f"  {case.name}", flush=True)
    ours = case.ours()
    ours.run(case.steps)
    expected = ours.read().astype(np.float64)
    ours.warm_up()
    running: dict[str, Contestant] = {"": ours}
    agreed: dict[str, float] = {}
    absent: dict[str, str] = {}
    for name, make in case.rivals.items():
        try:
            rival = make()
            rival.run(case.steps)
            apart = np.abs(rival.read() - expected)
        except Exception as problem:  # noqa: BLE001  a rival may fail in any way it likes
            word = "not install" if isinstance(problem, ImportError) else "not run"
            absent[name] = f"did {word}: {' '.join(str(problem).split())[:90]}"
            continue
        apart = apart if case.compared is None else apart[..., case.compared]
        agreed[name] = float(apart.max())
        # Not `>`: that would let NaN pass.
        if not agreed[name] <= case.tolerance:
            absent[name] = f"disagrees by {agreed[name]:.1e} after {case.steps} steps"
            continue
        running[name] = rival
    taken = seconds_per_step(running, rounds, seconds)
    cells = math.prod(case.size)
    share = 100 * ours.bytes_per_step / limit
    found = []
    for name in case.rivals:
        row = {"case": case.name, "grid": "x".join(map(str, case.size)), "rival": name}
        row |= {"ours steps/s": round(1 / taken[""], 1)}
        row |= {"ours MLUPS": round(cells / taken[""] / 1e6, 1)}
        row |= {"ours % of copy": round(share / taken[""], 1)}
        if name in running:
            row |= {"rival steps/s": round(1 / taken[name], 1)}
            row |= {"rival MLUPS": round(cells / taken[name] / 1e6, 1)}
            row |= {"rival % of copy": round(share / taken[name], 1)}
            row |= {"ours / rival": round(taken[name] / taken[""], 2)}
            row |= {"apart": f"{agreed[name]:.0e}" if agreed[name] else "0"}
        row |= {"note": absent.get(name, getattr(running.get(name), "how", ""))}
        found.append(row)
        print(f"    {name}: {row.get('ours / rival', row['note'])}", flush=True)
    return found


def main() -> None:
    options = parser(__doc__, devices=("cpu",))
    options.add_argument("words", nargs="*", metavar="WORD", help="of the names of cases")
    options.add_argument("--rounds", type=int, default=9)
    options.add_argument("--seconds", type=float, default=0.3)
    asked = options.parse_args()
    torch.set_num_threads(THREADS)
    # Rivals are imported after this, and take their threads from here.
    os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "NUMBA_NUM_THREADS"), str(THREADS))
    os.environ["JAX_PLATFORMS"] = "cpu"
    warnings.simplefilter("ignore")  # the rivals' own
    limit = max(copy_bandwidth("cpu", repeats=n).bytes_per_second for n in (10, 11, 12))
    found = []
    for case in cases():
        if not asked.words or any(word in case.name for word in asked.words):
            found += measured(case, asked.rounds, asked.seconds, limit)
    versions = {
        name: importlib.metadata.version(name)
        for name in ("numba", "lbmpy", "pystencils", "xlb", "cax", "jax")
        if importlib.util.find_spec(name)
    }
    report(
        "grid-peers",
        found,
        torch=torch.__version__,
        threads=THREADS,
        copy_GBps=round(limit / 1e9, 1),
        **versions,
    )


if __name__ == "__main__":
    main()
