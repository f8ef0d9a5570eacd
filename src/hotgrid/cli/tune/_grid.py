"""`hotgrid tune grid MODEL SIZE`: which form runs a model, and why."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import hotgrid as hg
from hotgrid.errors import ArgumentError

if TYPE_CHECKING:
    from hotgrid.kernels.tune import Ranking

GRID = "grid"
"""Used in place of the name of an op."""


def expect_grid_sense(words: tuple[str, ...], own_options: bool) -> None:
    """Refuse invalid combinations before torch is imported."""
    if own_options:
        raise ArgumentError("`--k` and `--dim` apply to ops; options of a model go after --set")
    if len(words) == 1:
        raise ArgumentError(
            f"`grid {words[0]}` lacks a size; write a model and sizes, "
            "such as `hotgrid tune --explain grid heat 512x512`"
        )


def grid_calls(
    words: tuple[str, ...],
    sizes: list[tuple[int, ...]],
    options: Mapping[str, str],
    dtype: str,
    device: str,
    *,
    explain: bool,
) -> dict[str, Any]:
    """The report of a model on each size: the forms and their times, or the winner."""
    import torch

    kind = getattr(torch, dtype, None)
    if not isinstance(kind, torch.dtype):
        raise ArgumentError(f"`dtype` is {dtype!r}; expected one such as float32 or float64")
    model = hg.grid.build_model(hg.grid.find_model(words[0]), options)
    calls: list[dict[str, Any]] = []
    for size in sizes:
        simulation = hg.Simulation(model, size, device=device, dtype=kind)
        found = _explained(simulation) if explain else _filled(simulation)
        calls.append({"shape": list(size), **found})
    return {"op": GRID, "model": words[0], "calls": calls}


def grid_stamps(ranking: "Ranking", devices: list[Any]) -> list[str]:
    """The stamps with which a kept winner holds on these devices."""
    from hotgrid.kernels.tune import stamp

    names = tuple(sorted(each.name for each in ranking.outcomes))
    return [stamp(names, device) for device in devices]


def _filled(simulation: "hg.grid.Simulation") -> dict[str, Any]:
    """Run a step, which chooses the form by itself."""
    simulation.step()
    return {"form": simulation.form, "model_class": type(simulation.model).__name__}


def _explained(simulation: "hg.grid.Simulation") -> dict[str, Any]:
    from hotgrid.kernels import copy_bandwidth

    found = hg.grid.explain_form(simulation)
    best = found.ranking.winner
    return {
        "call": found.call,
        "bytes": found.bytes,
        "flops": 0.0,
        "limit_seconds": found.limit or None,
        "copy_bytes_per_second": copy_bandwidth(simulation.device).bytes_per_second,
        "candidates": [asdict(each) for each in found.ranking.outcomes],
        "absent": [f"{name} ({reason})" for name, reason in found.obstacles.items()],
        "drawbacks": found.drawbacks,
        "winner": best.name if best else None,
        "chosen": found.chosen,
        "rule": found.rule,
    }
