"""`Sphere`: the places of a corpus, to ask which leaves lie in a direction."""

import json
import math
import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from hotgrid.blt._entropy._model import EntropyModel
from hotgrid.blt._ingest._encode import load_model
from hotgrid.blt._ingest._settings import IngestSettings
from hotgrid.blt._sidecar._sidecar import read_only
from hotgrid.contracts import checked
from hotgrid.errors import ArgumentError, DamagedError

from ._directions import Projection, ngram_features, unit
from ._index import SphereIndex
from ._leaves import source_at
from ._texts import DocumentBytes, shown
from ._write import KEY
from ._zones import ZONES, expect_zone, into_zone

_MOST_TEXT = 1 << 20
_PLACE = ("zone", "shell", "radius", "theta", "phi", "entropy", "prominence")
_ROWS = """
SELECT places.node, zone, shell, radius, theta, phi, entropy, prominence,
    coalesce(branch.modality, '')
FROM places JOIN nodes leaf ON leaf.id = places.node
LEFT JOIN nodes branch ON branch.id = leaf.parent ORDER BY places.node
"""


@dataclass(frozen=True)
class PlacedLeaf:
    """A leaf and its place.

    Attributes:
        node: Its number in the sidecar.
        zone: Its polar zone.
        shell: Its shell, 0 is the innermost.
        radius: The radius of that.
        theta: The angle from the north pole in radians.
        phi: Its longitude in radians.
        entropy: The mean over its bytes, in nats.
        prominence: The largest of its patches; None if it is not known.
        modality: That of its view.
        document: The name of its document; empty if it is not known.
        label: Its own.
        text: How it begins; in hexadecimal digits if it is not text.
    """

    node: int
    zone: str
    shell: int
    radius: float
    theta: float
    phi: float
    entropy: float
    prominence: float | None
    modality: str
    document: str
    label: str
    text: str


class Sphere:
    """The places that `place_corpus` has written.

    Args:
        path: The folder of a corpus, or a sidecar.
        model: The file of the entropy model of the corpus, for texts if directions come from
            embeddings.
        device: Where that runs.

    Attributes:
        about: How places were made.
        nodes: The numbers of leaves, ascending. All below are in this order.
        zones: The number of each one's zone, in the order of `ZONES`.
        shells: The shell of each.
        radii: The radius of each.
        units: The direction of each, of shape `(n, 3)`.
        entropies: The mean entropy of each.
        modalities: The number of each one's modality in `modality_names`.
        modality_names: In the order of letters.

    Raises:
        ArgumentError: There is no corpus, or it has no places.
        DamagedError: It is damaged.
    """

    def __init__(
        self, path: str | Path, *, model: str | Path | None = None, device: str = "cpu"
    ) -> None:
        self._source = source_at(path)
        self._model_path, self._device = model, device
        self._model: EntropyModel | None = None
        with closing(read_only(self._source.database)) as database:
            found = database.execute("SELECT value FROM meta WHERE key = ?", [KEY]).fetchone()
            if found is None:
                raise ArgumentError(
                    f"the leaves of `{path}` have no places yet: run "
                    f"`hotgrid sphere place {path}`"
                )
            self.about: dict[str, Any] = json.loads(found[0])
            rows = database.execute(_ROWS).fetchall()
        self._read(rows)
        table = self.about["projection"]
        self._projection = Projection.from_table(table) if table else None
        corpus = self._source.corpus
        self._documents = None if corpus is None else DocumentBytes(corpus)
        self._index = SphereIndex(self.units * self.radii[:, None])

    def _read(self, rows: Sequence[Any]) -> None:
        if any(row[1] not in ZONES for row in rows):
            raise DamagedError(f"`{self._source.database}` has places in unknown zones")
        zones, names = list(ZONES), sorted({row[8] for row in rows})
        numbers = {name: number for number, name in enumerate(names)}

        def column(at: int) -> Tensor:
            return torch.tensor([row[at] for row in rows], dtype=torch.float64)

        self.nodes = torch.tensor([row[0] for row in rows], dtype=torch.int64)
        self.zones = torch.tensor([zones.index(row[1]) for row in rows], dtype=torch.int64)
        self.shells = column(2).long()
        self.radii, theta, phi, self.entropies = map(column, (3, 4, 5, 6))
        self.units = torch.stack(
            [theta.sin() * phi.cos(), theta.sin() * phi.sin(), theta.cos()], dim=1
        )
        self.modality_names: list[str] = names
        self.modalities = torch.tensor([numbers[row[8]] for row in rows], dtype=torch.int64)

    def __len__(self) -> int:
        """How many leaves have a place."""
        return len(self.nodes)

    @property
    def name(self) -> str:
        """The name of the corpus, or of a sidecar alone."""
        corpus = self._source.corpus
        return self._source.database.stem if corpus is None else corpus.folder.resolve().name

    def at(self, node: int) -> int:
        """Return where a node is in the order of all.

        Raises:
            ArgumentError: It has no place.
        """
        # A number of any size: that of a tensor has 64 bits.
        found = int(torch.searchsorted(self.nodes, max(-1, min(node, sys.maxsize))))
        if found == len(self) or int(self.nodes[found]) != node:
            raise ArgumentError(
                f"node {node} has no place; leaves have, from {int(self.nodes[0])} to "
                f"{int(self.nodes[-1])}"
            )
        return found

    def direction_of(self, text: str | bytes, *, zone: str | None = None) -> Tensor:
        """Return the direction of a text, as a leaf with these bytes would have it.

        Args:
            text: The text.
            zone: In which zone; by default the one with most leaves.

        Raises:
            ArgumentError: It is empty, directions do not come from texts, or the model of
                the corpus is not given.
        """
        data = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text
        if not data:
            raise ArgumentError("a text to look for must not be empty")
        if zone is None:
            zone = list(ZONES)[int(torch.bincount(self.zones).argmax())]
        if self._projection is None:
            raise ArgumentError(
                "directions are by order, so a text has none; give a node or a direction"
            )
        by_model = self.about["by"] == "embeddings"
        features = self._embedded(data[:_MOST_TEXT]) if by_model else ngram_features([data])
        return into_zone(self._projection.units(features), zone)[0]

    def _embedded(self, data: bytes) -> Tensor:
        if self._model is None:
            self._model = self._load()
        found = self._model.signals([data], embeddings=True)[0].embeddings
        return unit(torch.empty(0) if found is None else found.mean(0, keepdim=True).cpu())

    def _load(self) -> EntropyModel:
        if self._model_path is None:
            raise ArgumentError(
                "directions come from embeddings, so a text needs the entropy model of the "
                "corpus: give it with --model"
            )
        path = str(self._model_path)
        if IngestSettings(model=path).of_documents()["model"] != self.about["model"]:
            raise ArgumentError(f"`{path}` is not the model that the corpus was made with")
        found = load_model(path, self._device)
        if not isinstance(found, EntropyModel):
            raise ArgumentError(f"`{path}` is a table, which has no embeddings")
        return found

    @checked(axis="3")
    def cone(
        self, axis: Tensor, angle: float, *, top: int | None = None, zone: str | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return the leaves in a cone and their angles to its axis, the nearest first.

        Args:
            axis: Its direction.
            angle: From its axis to its side, in radians, 0 to pi.
            top: The most leaves; by default all.
            zone: Only those of this zone.

        Returns:
            Their places in the order of all, and their angles in radians. Of equal angles
            the earlier leaf is first.

        Raises:
            ArgumentError: The axis has no direction, the angle or `top` is out of range, or
                there is no such zone.
        """
        if top is not None and top < 1:
            raise ArgumentError(f"`top` is {top}; expected at least 1")
        found, angles = self._index.cone_angles(axis, angle)
        if zone is not None:
            expect_zone(zone)
            inside = self.zones[found] == list(ZONES).index(zone)
            found, angles = found[inside], angles[inside]
        order = angles.argsort(stable=True)[:top]
        return found[order], angles[order]

    def leaf(self, at: int) -> PlacedLeaf:
        """Return what is known about the leaf at a place in the order of all.

        Raises:
            DamagedError: Its document is damaged.
        """
        node = int(self.nodes[at])
        with closing(read_only(self._source.database)) as database:
            label, start, end, branch, *values = database.execute(
                f'SELECT label, "start", "end", parent, {", ".join(_PLACE)} FROM nodes '  # noqa: S608 - our names
                "JOIN places ON node = id WHERE id = ?",
                [node],
            ).fetchone()
            trunk, earlier = database.execute(
                "SELECT parent, (SELECT count(*) FROM nodes other WHERE other.parent = "
                "own.parent AND other.id < own.id) FROM nodes own WHERE id = ?",
                [branch],
            ).fetchone() or (None, 0)
            number = database.execute(
                "SELECT count(*) FROM nodes WHERE kind = 'trunk' AND id < ?", [trunk or 0]
            ).fetchone()[0]
        name = text = ""
        if self._documents is not None:
            row = self._documents.row(number)
            name, first = row["name"], row["views"][earlier]["start"]
            text = shown(self._documents.read(number, first + start, first + end))
        modality = self.modality_names[int(self.modalities[at])]
        place: dict[str, Any] = dict(zip(_PLACE, values, strict=True))
        about = {"modality": modality, "document": name, "label": label or "", "text": text}
        return PlacedLeaf(node=node, **place, **about)

    def edges(self, label: str) -> Tensor:
        """Return pairs of leaves that edges join, of shape `(m, 2)`, by places in the order.

        An edge over more leaves joins each to the next one.
        """
        with closing(read_only(self._source.database)) as database:
            pairs = database.execute(
                "SELECT a.node, b.node FROM edges JOIN incidence a ON a.edge = edges.id "
                "JOIN incidence b ON b.edge = edges.id AND b.position = a.position + 1 "
                "WHERE edges.label = ?",
                [label],
            ).fetchall()
        found = torch.tensor(pairs, dtype=torch.int64).view(-1, 2)
        at = torch.searchsorted(self.nodes, found)
        known = self.nodes[at.clamp(max=max(0, len(self) - 1))] == found
        return at[known.all(1)]


def parse_direction(text: str) -> Tensor:
    """Return the direction that a text such as `0,0.5,1` names.

    Raises:
        ArgumentError: It is not three numbers, or all are 0.
    """
    try:
        values = [float(each) for each in text.split(",")]
    except ValueError:
        values = []
    if len(values) != 3 or not all(map(math.isfinite, values)) or not any(values):
        raise ArgumentError(f"`{text}` is not a direction; expected X,Y,Z such as 0,0.5,1")
    return torch.tensor(values, dtype=torch.float64)
