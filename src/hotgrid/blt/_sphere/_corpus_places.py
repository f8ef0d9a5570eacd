"""`place_corpus`: places for the leaves of a corpus, written into its sidecar."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hotgrid.blt._layers._device import usable_device
from hotgrid.config import logger
from hotgrid.errors import ArgumentError, near
from hotgrid.progress import Progress

from ._directions import PrincipalAxes, Projection, ngram_features, spiral, unit
from ._leaves import LeafBatch, Source, source_at
from ._place import log_weights, relax
from ._write import write_places
from ._zones import ZONES, ZoneRule, into_zone, zone_rule

BY = ("embeddings", "ngrams", "order")
"""The sources of directions."""


@dataclass(frozen=True)
class PlaceSummary:
    """The result of `place_corpus`.

    Attributes:
        nodes: How many leaves have a place.
        by: What directions came from.
        steps: Steps of the relaxation.
        zones: How many leaves are in each zone.
        rows: For each eighth of the shells: first and last shell, radii, leaves, and their
            mean entropy and prominence (None if it is not known).
    """

    nodes: int
    by: str
    steps: int
    zones: dict[str, int]
    rows: list[dict[str, Any]]


@dataclass(frozen=True)
class _Known:
    """The data of all leaves, in order."""

    nodes: NDArray[np.int64]
    zones: NDArray[np.str_]
    entropies: NDArray[np.float64]
    prominence: NDArray[np.float64] | None


def place_corpus(
    path: str | Path,
    *,
    zones: Iterable[str] = (),
    by: str | None = None,
    shells: int = 256,
    inner: float = 32.0,
    outer: float = 512.0,
    temperature: float = 0.5,
    entropy_weighted: bool = True,
    device: str = "cpu",
    progress: bool | None = None,
) -> PlaceSummary:
    """Place the leaves of a corpus on spherical shells, and write them to its sidecar.

    The table `places` has a row for each leaf: zone, shell, radius, theta and phi in radians,
    mean entropy and largest prominence. It is replaced as a whole or not at all. The same
    corpus and arguments give the same places.

    Args:
        path: The folder of a corpus, or a sidecar.
        zones: See `zone_rule`; everything is content by default.
        by: What directions come from. `embeddings`, the default if the corpus has them;
            `ngrams` of bytes; or `order`, a spiral.
        shells: How many.
        inner: The radius of the innermost.
        outer: The radius of the outermost.
        temperature: How much entropies count against prominence; less is more.
        entropy_weighted: Whether they count at all.
        device: Where sums and the relaxation run.
        progress: See `hotgrid.progress.Progress`.

    Raises:
        ArgumentError: There is nothing to place, or an argument does not fit.
        DamagedError: The sidecar is damaged, or not that of the corpus.
        StoreError: Another program works in the folder, or has the sidecar open.
    """
    source = source_at(path)
    where = usable_device(device)
    by = _by(source, by)
    zones = tuple(zones)
    rule = zone_rule(zones)
    known, projection = _read(source, rule, by, where, progress)
    if not len(known.nodes):
        raise ArgumentError(f"`{path}` has no leaves to place")
    weights = _weights(known, temperature, entropy_weighted).to(where)
    placed, steps = relax(weights, shells=shells, inner=inner, outer=outer)
    units = _units(source, rule, by, projection, len(known.nodes), where, progress)
    for zone in ZONES:
        inside = torch.from_numpy(known.zones == zone)
        units[inside] = into_zone(units[inside], zone)
    theta = torch.atan2(units[:, :2].norm(dim=1), units[:, 2])
    phi = torch.atan2(units[:, 1], units[:, 0])
    about = {
        "by": by,
        "shells": shells,
        "inner": inner,
        "outer": outer,
        "temperature": temperature,
        "entropy_weighted": entropy_weighted,
        "model": source.corpus.manifest["settings"]["model"] if source.corpus else None,
        "projection": projection.to_table() if projection else None,
    }
    found = placed.shells.cpu(), placed.radii.cpu(), theta, phi
    unknown = [None] * len(known.nodes)
    write_places(
        source,
        zip(
            known.nodes.tolist(),
            known.zones.tolist(),
            *(each.tolist() for each in found),
            known.entropies.tolist(),
            unknown if known.prominence is None else known.prominence.tolist(),
            strict=True,
        ),
        about,
    )
    counts = {zone: int((known.zones == zone).sum()) for zone in ZONES}
    for each in zones:
        if not counts[each.partition("=")[0]]:
            logger("blt").warning(
                "no leaf is in the zone of `%s`: patterns are those of names of documents, "
                "such as `docs/faq.md`, and labels of views",
                each,
            )
    return PlaceSummary(
        len(known.nodes), by, steps, counts, _table(known, *found[:2], shells=shells)
    )


def _by(source: Source, by: str | None) -> str:
    if by is None:
        if source.corpus is None:
            return "order"
        return "embeddings" if source.has_embeddings else "ngrams"
    if by not in BY:
        raise ArgumentError(f"`by` is `{by}`{near(by, BY)} (there are {', '.join(BY)})")
    if by != "order" and source.corpus is None:
        raise ArgumentError(
            f"directions by {by} need the corpus, and `{source.database}` is a sidecar alone"
        )
    if by == "embeddings" and not source.has_embeddings:
        raise ArgumentError(
            "the corpus has no embeddings: ingest it with an entropy model (--model), or take "
            "directions by ngrams"
        )
    return by


def _features(batch: LeafBatch, by: str) -> Tensor:
    if by == "ngrams":
        return ngram_features(batch.texts)
    return unit(torch.from_numpy(np.array(batch.embeddings)))


def _read(
    source: Source, rule: ZoneRule, by: str, where: torch.device, show: bool | None
) -> tuple[_Known, Projection | None]:
    """All that is known about leaves, and from their features the three axes."""
    nodes: list[int] = []
    zones: list[str] = []
    entropies: list[float] = []
    prominence: list[float] = []
    axes = PrincipalAxes(where)
    for batch in _batches(source, rule, by, "reading", show):
        nodes += batch.nodes
        zones += batch.zones
        entropies += batch.entropies
        prominence += batch.prominence
        if by != "order" and batch.nodes:
            axes.add(_features(batch, by))
    known = _Known(
        np.array(nodes, np.int64),
        np.array(zones, np.str_),
        np.array(entropies),
        np.array(prominence) if len(prominence) == len(nodes) else None,
    )
    return known, axes.projection() if by != "order" and nodes else None


def _units(
    source: Source,
    rule: ZoneRule,
    by: str,
    projection: Projection | None,
    count: int,
    where: torch.device,
    show: bool | None,
) -> Tensor:
    """The direction of each leaf on the whole sphere."""
    if projection is None:
        return torch.from_numpy(spiral(count))
    parts = [
        projection.units(_features(batch, by).to(where)).cpu()
        for batch in _batches(source, rule, by, "placing", show)
        if batch.nodes
    ]
    return torch.cat(parts)


def _batches(
    source: Source, rule: ZoneRule, by: str, what: str, show: bool | None
) -> Iterator[LeafBatch]:
    with Progress(what, source.documents, unit="documents", show=show, brief=True) as bar:
        for batch in source.batches(rule, texts=by == "ngrams", embeddings=by == "embeddings"):
            yield batch
            bar.advance(batch.documents)


def _weights(known: _Known, temperature: float, weighted: bool) -> Tensor:
    if known.prominence is None and not weighted:
        raise ArgumentError(
            "the corpus has no prominence, so without entropies there is nothing to weight "
            "leaves by; ingest it with an entropy model (--model)"
        )
    entropies = torch.from_numpy(known.entropies)
    prominence = (
        torch.ones_like(entropies)
        if known.prominence is None
        else torch.from_numpy(known.prominence)
    )
    return log_weights(prominence, entropies if weighted else None, temperature=temperature)


def _table(known: _Known, found: Tensor, radii: Tensor, *, shells: int) -> list[dict[str, Any]]:
    width = -(-shells // 8)
    rows = []
    for first in range(0, shells, width):
        inside = ((found >= first) & (found < first + width)).numpy()
        if not inside.any():
            continue
        some = radii.numpy()[inside]
        mean = None if known.prominence is None else float(known.prominence[inside].mean())
        rows.append(
            {
                "first": first,
                "last": min(first + width, shells) - 1,
                "least_radius": float(some.min()),
                "most_radius": float(some.max()),
                "leaves": int(inside.sum()),
                "entropy": float(known.entropies[inside].mean()),
                "prominence": mean,
            }
        )
    return rows
