"""How fast is an untuned model? Random models in every form, against a slow reference.

    python benchmarks/study_any_model.py [--device cuda] [--models 40] [--first 0] [--cells N]

The models are those of the conformance suite: 1 to 3 dims, radius 1 to 3, fields of bytes and
floats with 1 to 3 components, products, divisions, selects, inputs and boundaries, here on
large grids whose sides are not powers of two, one in four as a batch. Each runs in every form.
The first step of each form is compared with NumPy in boxes at the corners, at the sides and
inside. The table has the share of the copy bandwidth, the ratio to uncompiled whole arrays, and
what the form that is chosen by default loses to the best.
"""

import itertools
import random
import statistics
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from options import parser
from report import once, report

import hotgrid as hg

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "conformance"))
from random_models import (  # pyright: ignore[reportMissingImports]
    RandomModel,
    Recipe,
    recipe,
    slow_start,
    slow_step,
)

# Rounding may push a number over the threshold of a select.
MOST_DIFFERENT = 1e-3


def enlarged(made: Recipe, cells: int, draw: random.Random) -> Recipe:
    """A recipe on a grid of about this many cells whose sides are odd and differ."""
    rank = len(made.size)
    side = cells ** (1 / rank)
    sides = [round(side * draw.uniform(0.8, 1.25)) | 1 for _ in range(rank - 1)]
    last = round(cells / np.prod(sides)) | 1
    return replace(made, size=(*sides, last))


def boxes(size: tuple[int, ...], draw: random.Random) -> list[tuple[range, ...]]:
    """Boxes of 8 cells a side in all corners and in a few other places."""
    corners = itertools.product(*[(0, n - 8) for n in size])
    inside = [tuple(draw.randrange(n - 8) for n in size) for _ in range(4)]
    return [tuple(range(n, n + 8) for n in first) for first in (*corners, *inside)]


def wrong_share(made: Recipe, sim: hg.Simulation, draw: random.Random) -> float:
    """The share of cells that differ from the slow evaluation after the first step."""
    fields, inputs = slow_start(made)
    sim.step()
    state = [x[0] if sim._setting.batch else x for x in sim.state.values()]
    wrong = total = 0
    for box in boxes(made.size, draw):
        cut = tuple(slice(r.start, r.stop) for r in box)
        for x, right in zip(state, slow_step(made, fields, inputs, box), strict=True):
            found = x[(..., *cut)].cpu().numpy().reshape(right.shape)
            near = np.abs(found.astype(float) - right) <= (1e-5 if x.is_floating_point() else 0)
            wrong, total = wrong + int((~near).sum()), total + near.size
    return wrong / total


def studied(seed: int, cells: int, device: str) -> dict[str, Any]:
    draw = random.Random(seed)
    batch = 3 if seed % 4 == 0 else None
    made = enlarged(recipe(seed), cells // (batch or 1), draw)

    def simulation(**options: Any) -> hg.Simulation:
        return hg.Simulation(RandomModel(made), device=device, batch=batch, **options)

    sim = simulation()
    told = hg.grid.explain_form(sim)
    seconds = {each.name: each.score for each in told.ranking.outcomes if each.score}
    mine, best = seconds[told.chosen], min(seconds.values())
    wrong = max(wrong_share(made, simulation(form=form), draw) for form in seconds)
    assert wrong <= MOST_DIFFERENT, f"model {seed}: {wrong:.1%} of cells are wrong"
    plain = simulation(form="roll", compiled=False)
    plain.run(2, progress=False)
    eager = min(once(lambda: plain.run(2, progress=False)) for _ in range(3)) / 2
    planes = sum(f.components for f in made.fields)
    return {
        "model": seed,
        "grid": "x".join(map(str, made.size)) + (f" in {batch} runs" if batch else ""),
        "radius": made.radius,
        "fields": f"{len(made.fields)} of {planes} planes, {len(made.inputs)} inputs",
        "bytes": sum(f.dtype == torch.uint8 for f in made.fields),
        "form": told.chosen,
        "share of copy %": round(100 * told.limit / mine, 1),
        "best": min(seconds, key=seconds.__getitem__),
        "behind best %": round(100 * (mine / best - 1), 1),
        "x eager": round(eager / mine, 2),
        "wrong %": round(100 * wrong, 3),
    }


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--models", type=int, default=40, help="how many models")
    options.add_argument("--first", type=int, default=0, help="the seed of the first model")
    options.add_argument("--cells", type=int, help="cells of a grid; 2^25 on a GPU, else 2^20")
    given = options.parse_args()
    cells = given.cells or (1 << 25 if given.device == "cuda" else 1 << 20)
    rows = []
    for seed in range(given.first, given.first + given.models):
        rows.append(studied(seed, cells, given.device))
        print(*(f"{key} {value}" for key, value in rows[-1].items()), sep=", ", flush=True)
        torch.compiler.reset()
    rows.sort(key=lambda row: row["share of copy %"])
    shares, ratios = ([row[key] for row in rows] for key in ("share of copy %", "x eager"))
    report(
        f"any-model-{given.device}",
        rows,
        models=len(rows),
        median_share=statistics.median(shares),
        median_ratio_to_eager=statistics.median(ratios),
        least_ratio_to_eager=min(ratios),
        chosen_within_3_percent=sum(row["behind best %"] <= 3 for row in rows),
        forms=dict(Counter(row["form"] for row in rows)),
    )


if __name__ == "__main__":
    main()
