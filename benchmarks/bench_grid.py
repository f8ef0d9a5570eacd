"""Claims of the grid: shares of the copy bandwidth, against plain torch in the same run.

    python benchmarks/bench_grid.py [--device cpu] [NAME ...]

Names choose cases; the other rows of an earlier table stay as they are.
"""

import json
import time
from dataclasses import replace

import torch
from options import parser
from report import RESULTS, report

import hotgrid as hg
from hotgrid.grid.forms._roll import RollForm
from hotgrid.kernels import copy_bandwidth


def speed(model, size, steps: int, at_once: int | None = None, **options) -> hg.grid.Speed:
    """The best of three runs, the compiling first step left out."""
    sim = hg.Simulation(model, size=size, **options)
    if isinstance(model, hg.life.Life | hg.life.Life3D):
        # Half of all bits, made where they are needed: gigabytes of cells take a minute.
        words = {k: torch.randint_like(x, 2 if x.dtype == torch.uint8 else 2**31 - 1)
                 for k, x in sim._form.read().items()}  # fmt: skip
        sim._form.load(words)
    sim.run(steps, progress=False, check_every=10**9)
    best = None
    for _ in range(3):
        torch.cuda.synchronize() if sim.device.type == "cuda" else None
        begin = time.perf_counter()
        for _ in range(steps // (at_once or steps)):
            sim._form.run(at_once or steps)
        torch.cuda.synchronize() if sim.device.type == "cuda" else None
        seconds = time.perf_counter() - begin
        best = seconds if best is None else min(best, seconds)
    cells = sim.speed.cells
    found = hg.grid.Speed(steps, best, sim.speed.startup_seconds, cells, sim.bytes_per_step())
    print(f"  {type(model).__name__} {size} {options}: {found.mlups:,.0f} MLUPS", flush=True)
    del sim
    torch.cuda.empty_cache() if torch.cuda.is_available() else None
    return found


def rows(cases, limit: float, device: str, names: list[str]) -> list[dict]:
    found = []
    for name, model, size, steps, options, cells_per_site in cases:
        if names and not any(word in name for word in names):
            continue
        s = speed(model, size, steps, device=device, **options)
        found.append({
            "case": name,
            "grid": "x".join(map(str, size)),
            "steps/s": round(s.steps_per_second, 1),
            "MLUPS": round(s.mlups * cells_per_site, 1),
            "GB/s": round(s.bytes_per_second / 1e9, 1),
            "share of copy %": round(100 * s.bytes_per_second / limit, 1),
            "start-up s": round(s.startup_seconds, 1),
        })  # fmt: skip
    return found


def by_hand_d2q9(size, steps: int, device: str) -> float:
    """The rival on every device: D2Q9 BGK with torch.roll, written plainly and compiled."""
    c = [(0, 0), (0, 1), (1, 0), (0, -1), (-1, 0), (1, 1), (1, -1), (-1, -1), (-1, 1)]
    w = [4 / 9] + [1 / 9] * 4 + [1 / 36] * 4

    def step(f: torch.Tensor) -> torch.Tensor:
        f = [torch.roll(f[i], c[i], (0, 1)) for i in range(9)]
        rho = sum(f)
        uy = sum(f[i] * c[i][0] for i in range(9) if c[i][0]) / rho
        ux = sum(f[i] * c[i][1] for i in range(9) if c[i][1]) / rho
        usq = 1.5 * (ux * ux + uy * uy)
        out = []
        for i in range(9):
            cu = 3 * (c[i][0] * uy + c[i][1] * ux)
            out.append(f[i] - 1.5 * (f[i] - w[i] * rho * (1 + cu + 0.5 * cu * cu - usq)))
        return torch.stack(out)

    compiled = torch.compile(step, dynamic=False)
    weights = torch.tensor(w, device=device).reshape(9, 1, 1)
    f = weights * (1 + 0.01 * torch.rand(size, device=device))
    mass = f.sum().item()
    best = float("inf")
    for _ in range(4):
        begin = time.perf_counter()
        for _ in range(steps):
            f = compiled(f)
        torch.cuda.synchronize() if device == "cuda" else None
        best = min(best, time.perf_counter() - begin)
    assert abs(f.sum().item() / mass - 1) < 1e-4
    return steps * size[0] * size[1] / best / 1e6


def cuda_cases() -> list:
    flow, lbm, half = hg.lbm.Flow, hg.lbm, {"storage": torch.float16}
    big, cube = (4096, 4096), (256, 256, 256)
    empty = hg.life.Life(pattern="glider")
    return [
        ("D2Q9 BGK", flow(collision=lbm.BGK()), big, 200, {}, 1),
        ("D2Q9 TRT", flow(collision=lbm.TRT()), big, 200, {}, 1),
        ("D2Q9 Smagorinsky", flow(collision=lbm.Smagorinsky()), big, 200, {}, 1),
        ("D2Q9 BGK fp16 storage", flow(collision=lbm.BGK()), big, 200, half, 1),
        ("D2Q9 Karman: walls, inlet, outlet", lbm.Karman(reynolds=100), big, 200, {}, 1),
        ("D3Q19 BGK", flow(lattice=lbm.D3Q19, collision=lbm.BGK()), cube, 100, {}, 1),
        ("D3Q19 BGK", flow(lattice=lbm.D3Q19, collision=lbm.BGK()), (512, 512, 512), 20, {}, 1),
        (
            "D3Q19 BGK fp16 storage",
            flow(lattice=lbm.D3Q19, collision=lbm.BGK()),
            cube,
            100,
            half,
            1,
        ),
        ("D3Q27 BGK", flow(lattice=lbm.D3Q27, collision=lbm.BGK()), cube, 50, {}, 1),
        ("D2Q9 MRT", flow(collision=lbm.MRT()), big, 200, {}, 1),
        ("D2Q9 KBC", flow(collision=lbm.KBC()), big, 200, {}, 1),
        ("D2Q9 central moments", flow(collision=lbm.CentralMoments()), big, 200, {}, 1),
        ("D3Q19 MRT", flow(lattice=lbm.D3Q19, collision=lbm.MRT()), cube, 50, {}, 1),
        ("D3Q27 KBC", flow(lattice=lbm.D3Q27, collision=lbm.KBC()), cube, 50, {}, 1),
        ("D3Q27 cumulant", flow(lattice=lbm.D3Q27, collision=lbm.Cumulant()), cube, 50, {}, 1),
        ("D2Q9 two components", lbm.PhaseSeparation(), big, 100, {}, 1),
        ("D2Q9 thermal", lbm.RayleighBenard(), big, 100, {}, 1),
        ("D2Q9 BGK small", flow(collision=lbm.BGK()), (128, 128), 64000, {}, 1),
        ("D2Q9 BGK small", flow(collision=lbm.BGK()), (512, 512), 12800, {}, 1),
        ("heat", hg.pde.Heat(), (16384, 16384), 100, {}, 1),
        ("Gray-Scott", hg.pde.GrayScott(), (8192, 8192), 100, {}, 1),
        ("wave", hg.pde.Wave(), (8192, 8192), 100, {}, 1),
        ("Cahn-Hilliard", hg.pde.CahnHilliard(), (8192, 8192), 100, {}, 1),
        ("shallow water", hg.pde.ShallowWater(), big, 100, {}, 1),
        ("gas", hg.pde.Gas(), big, 100, {}, 1),
        ("Life packed, one generation a pass", empty, (65536, 65536), 480, {"at_once": 1}, 1),
        ("Life packed", empty, (65536, 65536), 960, {}, 1),
        ("Life bytes", hg.life.Life(packed=False, pattern="glider"), (16384,) * 2, 100, {}, 1),
        ("Life 3-D packed", hg.life.Life3D(), (512, 1024, 1024), 100, {}, 1),
    ]


def largest() -> dict:
    """The largest cube of D3Q19 that the GPU holds, and its speed over a few steps."""
    model = hg.lbm.Flow(lattice=hg.lbm.D3Q19, collision=hg.lbm.BGK())
    setting = hg.Simulation(model, size=(32, 32, 32), device="cuda")._setting
    for n in range(1024, 511, -32):
        try:
            form = RollForm(replace(setting, size=(n, n, n)))
            f = torch.rand(19, n, n, n, device="cuda").mul_(1e-3)
            form.load({"f": f})
            del f
            form.run(2)
            torch.cuda.synchronize()
            begin = time.perf_counter()
            form.run(4)
            torch.cuda.synchronize()
            seconds = (time.perf_counter() - begin) / 4
        except torch.OutOfMemoryError:
            form = None  # lets go of its arrays
            torch.cuda.empty_cache()
            continue
        return {
            "case": "D3Q19 BGK, the largest that fits",
            "grid": f"{n}x{n}x{n}",
            "MLUPS": round(n**3 / seconds / 1e6, 1),
            "GB/s": round(152 * n**3 / seconds / 1e9, 1),
        }
    raise SystemExit("not even 512^3 fits")


def cpu_cases() -> list:
    flow, lbm = hg.lbm.Flow, hg.lbm
    return [
        ("D2Q9 BGK", flow(collision=lbm.BGK()), (1024, 1024), 40, {}, 1),
        ("D2Q9 TRT", flow(collision=lbm.TRT()), (1024, 1024), 40, {}, 1),
        ("D2Q9 BGK eager", flow(collision=lbm.BGK()), (1024, 1024), 4, {"compiled": False}, 1),
        (
            "D2Q9 Karman: walls, inlet, outlet",
            lbm.Karman(reynolds=100),
            (1024, 1024),
            40,
            {},
            1,
        ),
        ("D2Q9 BGK small", flow(collision=lbm.BGK()), (64, 64), 2000, {}, 1),
        ("heat", hg.pde.Heat(), (2048, 2048), 100, {}, 1),
        ("Life packed", hg.life.Life(), (2048, 2048), 500, {}, 1),
        ("Life bytes", hg.life.Life(packed=False), (2048, 2048), 50, {}, 1),
        ("Life 3-D packed", hg.life.Life3D(), (256, 256, 256), 50, {}, 1),
        ("Life 3-D bytes", hg.life.Life3D(packed=False), (256, 256, 256), 5, {}, 1),
    ]


def with_earlier(name: str, found: list[dict]) -> list[dict]:
    """The rows found now in the place of those of the last table, the others as they were."""
    files = sorted(RESULTS.glob(f"{name}-*.json"))
    rows = json.loads(files[0].read_text())["rows"] if len(files) == 1 else []
    fresh = {(row["case"], row["grid"]): row for row in found}
    kept = [fresh.pop((row["case"], row["grid"]), row) for row in rows]
    return kept + list(fresh.values())


def main() -> None:
    options = parser(__doc__)
    options.add_argument("names", nargs="*", metavar="NAME", help="parts of the names of cases")
    given = options.parse_args()
    gpu = given.device == "cuda"
    limit = copy_bandwidth(given.device).bytes_per_second
    found = rows(cuda_cases() if gpu else cpu_cases(), limit, given.device, given.names)
    size = (4096, 4096) if gpu else (1024, 1024)
    mlups = by_hand_d2q9(size, 200 if gpu else 20, given.device)
    moved = mlups * 72e6
    found.append({
        "case": "D2Q9 BGK by hand, torch.roll compiled",
        "grid": "x".join(map(str, size)),
        "MLUPS": round(mlups, 1),
        "GB/s": round(moved / 1e9, 1),
        "share of copy %": round(100 * moved / limit, 1),
    })  # fmt: skip
    if gpu and (not given.names or "largest" in given.names):
        found.append(largest())
    where = torch.cuda.get_device_name() if gpu else "cpu"
    name = f"grid-{given.device}"
    report(
        name,
        with_earlier(name, found) if given.names else found,
        torch=torch.__version__,
        device=where,
        copy_GBps=round(limit / 1e9, 1),
    )


if __name__ == "__main__":
    main()
