"""Claim: shells and cones for a million points in seconds, and equal to brute force.

Water-filling as a relaxation against the same by sorting, on random prominences and entropies;
then cones over the placed points through the index against comparing all angles. Both pairs
give the same result, which is checked.

    python benchmarks/bench_sphere.py --device cuda --points 1000000
"""

import math

import torch
from options import parser
from report import once, report

from hotgrid.blt import SphereIndex, angles_between, log_weights, place, relax

QUERIES = 100


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--points", type=int, nargs="+", default=[100_000, 1_000_000])
    options.add_argument("--shells", type=int, default=256)
    told = options.parse_args()
    rows = [row(count, told.shells, told.device) for count in told.points]
    report(f"sphere-{told.device}", rows, shells=told.shells, torch=torch.__version__)


def row(count: int, shells: int, device: str) -> dict[str, float]:
    generator = torch.Generator().manual_seed(0)
    prominence = torch.rand(count, generator=generator).exp().to(device)
    entropies = (4 * torch.rand(count, generator=generator)).to(device)
    weights = log_weights(prominence, entropies, temperature=1e-3)
    relaxed, steps = relax(weights, shells=shells)
    if not torch.equal(relaxed.shells, place(weights, shells=shells).shells):
        raise SystemExit("the relaxation does not end where sorting does")
    units = torch.randn(count, 3, generator=generator, dtype=torch.float64).to(device)
    units = units / units.norm(dim=1, keepdim=True)
    points = units * relaxed.radii[:, None]
    index = SphereIndex(points)
    axes = units[:: max(1, count // QUERIES)][:QUERIES]
    angle = math.radians(5)

    def by_index() -> list[torch.Tensor]:
        return [index.cone(each, angle) for each in axes]

    def by_force() -> list[torch.Tensor]:
        return [(angles_between(units, each) <= angle).nonzero()[:, 0] for each in axes]

    pairs = zip(by_index(), by_force(), strict=True)
    if not all(torch.equal(one, other) for one, other in pairs):
        raise SystemExit("the index finds other points than brute force")
    return {
        "points": count,
        "steps": steps,
        "relax ms": 1e3 * min(once(lambda: relax(weights, shells=shells)) for _ in range(3)),
        "place ms": 1e3 * min(once(lambda: place(weights, shells=shells)) for _ in range(3)),
        "index ms": 1e3 * min(once(lambda: SphereIndex(points)) for _ in range(3)),
        "cone ms": 1e3 * min(once(by_index) for _ in range(2)) / len(axes),
        "brute ms": 1e3 * min(once(by_force) for _ in range(2)) / len(axes),
    }


if __name__ == "__main__":
    main()
