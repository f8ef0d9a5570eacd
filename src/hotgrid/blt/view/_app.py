"""`SphereApp`: the page of a sphere, and a server for it."""

import asyncio
import math
from collections.abc import Callable
from dataclasses import asdict
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from torch import Tensor

from hotgrid.blt._sphere._harmonics import angular_density
from hotgrid.blt._sphere._sphere import Sphere
from hotgrid.blt._sphere._zones import ZONES
from hotgrid.errors import ArgumentError, HotgridError
from hotgrid.web import PageFiles, PageServer

_EDGES = ("next", "same_source")
_MOST_EDGES = 200_000
_HITS = 20
_MOST_TEXT = 10_000


class SphereApp:
    """An application that shows a sphere.

    Args:
        sphere: What is shown.
        most: The most points that the page gets; of more, evenly many are left out. Queries
            still look at all.

    Example:
        >>> with SphereApp(Sphere("corpus")).serve(port=0) as server:  # doctest: +SKIP
        ...     server.wait()

    Raises:
        ArgumentError: `most` is below 1.
    """

    def __init__(self, sphere: Sphere, *, most: int = 500_000) -> None:
        if most < 1:
            raise ArgumentError(f"`most` is {most}; expected at least 1 point")
        self._sphere = sphere
        self._shown = _spread(len(sphere), most)
        self._leaf = lru_cache(maxsize=4096)(lambda at: asdict(sphere.leaf(at)))
        self._pairs = lru_cache(self._read_pairs)
        self._density = lru_cache(lambda: angular_density(sphere.units))
        pages = PageFiles("hotgrid.blt.view")
        self.app = Starlette(
            routes=[
                pages.home("sphere.html"),
                Route("/sphere.json", self._answer(self._about)),
                Route("/points.bin", self._answer(self._points)),
                Route("/edges/{label}", self._answer(self._edges)),
                Route("/node/{node:int}", self._answer(self._node)),
                Route("/cone", self._answer(self._cone)),
                pages.route(),
            ]
        )

    def serve(self, port: int = 8768, host: str = "127.0.0.1") -> PageServer:
        """A server for it, which is not started yet.

        Raises:
            ArgumentError: The address cannot be used.
            MissingPartError: uvicorn is not installed.
        """
        return PageServer(self.app, port, host)

    @staticmethod
    def _answer(work: Callable[[Request], Any]) -> Callable[[Request], Any]:
        """Work in a thread, since files are read; what is wrong with a request is said."""

        async def handle(request: Request) -> Response:
            try:
                found = await asyncio.to_thread(work, request)
            except HotgridError as problem:
                return JSONResponse({"error": str(problem)}, 400)
            if isinstance(found, bytes):
                return Response(found, media_type="application/octet-stream")
            return JSONResponse(found)

        return handle

    def _about(self, request: Request) -> dict[str, Any]:
        sphere = self._sphere
        entropies = sphere.entropies[self._shown]
        zones = torch.bincount(sphere.zones, minlength=len(ZONES)).tolist()
        names = sphere.modality_names
        kinds = torch.bincount(sphere.modalities, minlength=len(names)).tolist()
        return {
            "name": sphere.name,
            "leaves": len(sphere),
            "points": len(self._shown),
            "by": sphere.about["by"],
            "shells": sphere.about["shells"],
            "zones": [
                {"name": name, "count": count, "from": ZONES[name][0], "to": ZONES[name][1]}
                for name, count in zip(ZONES, zones, strict=True)
            ],
            "modalities": [
                {"name": name or "unknown", "count": count}
                for name, count in zip(names, kinds, strict=True)
            ],
            "entropy": [float(entropies.min()), float(entropies.max())],
            "density": _most_of(self._density()[self._shown]),
            "edges": {label: len(self._pairs(label)) for label in _EDGES},
        }

    def _points(self, request: Request) -> bytes:
        """x, y, z, entropy, density; then nodes, shells, zones and modalities."""
        sphere, some = self._sphere, self._shown
        scale = sphere.radii[some] / float(sphere.about["outer"])
        columns = (
            (sphere.units[some] * scale[:, None], "<f4"),
            (sphere.entropies[some], "<f4"),
            (self._density()[some], "<f4"),
            (sphere.nodes[some], "<u4"),
            (sphere.shells[some], "<u2"),
            (sphere.zones[some], "u1"),
            (sphere.modalities[some], "u1"),
        )
        return b"".join(each.numpy().astype(kind).tobytes() for each, kind in columns)

    def _read_pairs(self, label: str) -> Tensor:
        """The points that edges of a label join, as far as both are shown."""
        pairs = self._sphere.edges(label)
        at = torch.searchsorted(self._shown, pairs).clamp(max=max(0, len(self._shown) - 1))
        return at[(self._shown[at] == pairs).all(1)][:_MOST_EDGES]

    def _edges(self, request: Request) -> bytes:
        label = request.path_params["label"]
        if label not in _EDGES:
            raise ArgumentError(f"there is no kind of edge `{label[:80]}`")
        return self._pairs(label).numpy().astype("<u4").tobytes()

    def _node(self, request: Request) -> dict[str, Any]:
        return self._leaf(self._sphere.at(_number(str(request.path_params["node"]), "node")))

    def _cone(self, request: Request) -> dict[str, Any]:
        asked = request.query_params
        angle = math.radians(_angle(asked.get("angle", "15")))
        text, node = asked.get("text", ""), asked.get("node", "")
        if node:
            axis = self._sphere.units[self._sphere.at(_number(node, "node"))]
        else:
            axis = self._sphere.direction_of(text[:_MOST_TEXT])
        found, angles = self._sphere.cone(axis, angle)
        hits = [
            {"angle": math.degrees(each), **self._leaf(at)}
            for at, each in zip(found[:_HITS].tolist(), angles[:_HITS].tolist(), strict=True)
        ]
        inside = torch.from_numpy(np.isin(self._shown.numpy(), found.numpy()))
        return {
            "axis": axis.tolist(),
            "inside": len(found),
            "points": inside.nonzero()[:, 0].tolist(),
            "hits": hits,
        }


def _spread(count: int, most: int) -> Tensor:
    """All numbers below `count`, or `most` of them at equal distances."""
    if count <= most:
        return torch.arange(count)
    return torch.arange(most) * count // most


def _most_of(values: Tensor) -> list[float]:
    """The range of values without the highest hundredth, which would leave no colour else."""
    ordered = values.sort().values
    return [float(ordered[0]), float(ordered[(len(ordered) - 1) * 99 // 100])]


def _number(text: str, name: str) -> int:
    if not text.isdecimal() or len(text) > 18:
        raise ArgumentError(f"`{name}` must be a whole number, got {text[:80]!r}")
    return int(text)


def _angle(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value <= 180:
        raise ArgumentError(f"`angle` must be 0 to 180 degrees, got {text[:80]!r}")
    return value
