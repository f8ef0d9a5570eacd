"""Solids from closed surfaces of triangles, as STL files hold them."""

import io
import math
import warnings
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from hotgrid.errors import ArgumentError, MissingPartError
from hotgrid.files import read_regular
from hotgrid.grid.model import Parameter, whole_number

from ._solids import Solid
from ._voxels import inside_surface

Surface = str | Path | Tensor
"""An STL file, or the corners of triangles `[triangles, 3, 3]`, coordinates as `(x, y, z)`."""

_LARGEST_FILE = 1 << 28
# Corners are rounded to this many bits of the body, so that those that join are equal, and the
# three coordinates of one fit into a whole number.
_BITS = 20
# Cells that a body may be long or away, so that tests of places stay exact.
_FAR = 1e6


def from_mesh(mesh: Surface, centre: Sequence[float], length: float) -> Solid:
    """The solid inside a closed surface of triangles, in 3-D.

    Arguments:
        mesh: An STL file, binary or text, or the corners of triangles
            `[triangles, 3, 3]` with coordinates `(x, y, z)`.
        centre: Where the middle of its bounding box is to be, in cells, in the order of
            the axes `(z, y, x)`.
        length: The longest side of its bounding box, in cells.

    Example:
        >>> ball = from_mesh(icosphere(), centre=(8, 8, 8), length=12)
        >>> ball((16, 16, 16)).sum(), round(4 / 3 * math.pi * 6**3)
        (tensor(896), 905)

    Raises:
        ArgumentError: The file is not STL, or the surface is not closed.
        DamagedError: The file cannot be read, or is larger than 256 MB.
        MissingPartError: A file was given and trimesh is not installed.
    """
    return placed(closed_surface(mesh), centre, length)


def placed(surface: Tensor, centre: Sequence[float], length: float) -> Solid:
    """The solid inside a surface that is closed; see `from_mesh`."""
    low, high = surface.amin((0, 1)), surface.amax((0, 1))
    scale = Parameter(1.0, above=0, high=_FAR).checked("length", length) / (high - low).max()
    corners = ((surface - (low + high) / 2) * scale).flip(-1) + _place(centre)

    def solid(size: tuple[int, ...]) -> Tensor:
        if len(size) != 3:
            raise ArgumentError(f"a mesh is a solid in 3 dims, but the grid is {size}")
        return inside_surface(corners, size)

    return solid


def closed_surface(mesh: Surface) -> Tensor:
    """The corners of a closed surface, float64 `[triangles, 3, 3]`; those that join are equal.

    Raises:
        ArgumentError: It is not a closed surface; the message has the number of open edges.
    """
    name = f"the mesh `{mesh}`" if isinstance(mesh, str | Path) else "the mesh"
    try:
        read = _read(Path(mesh)) if isinstance(mesh, str | Path) else torch.as_tensor(mesh)
    except (TypeError, RuntimeError):
        raise ArgumentError(
            f"`mesh` must be an STL file or a tensor of corners, got {mesh!r}"
        ) from None
    if read.ndim != 3 or tuple(read.shape[1:]) != (3, 3) or not len(read):
        raise ArgumentError(
            f"{name} must be corners of triangles [triangles, 3, 3], got {tuple(read.shape)}"
        )
    low, high = read.double().amin((0, 1)), read.double().amax((0, 1))
    extent = (high - low).max().item()
    if not 0 < extent < math.inf:
        raise ArgumentError(f"{name} has no extent that is finite and above 0: {extent:g}")
    surface = ((read.double() - low) * (2**_BITS / extent)).round()
    x, y, z = surface.long().unbind(-1)
    corners, faces = (((x << _BITS + 1) + y << _BITS + 1) + z).unique(return_inverse=True)
    edges, lacking = _edges(faces, len(corners))
    if lacking:
        raise ArgumentError(
            f"{name} is not closed: {lacking} of its {edges} edges lack a triangle on one "
            "side, or the triangles there are turned opposite ways; repair it in a mesh editor"
        )
    return surface * (extent / 2**_BITS)


def _edges(faces: Tensor, corners: int) -> tuple[int, int]:
    """How many edges there are, and on how many one way is taken more often than the other."""
    a, b = faces.flatten(), faces.roll(-1, 1).flatten()
    a, b = a[a != b], b[a != b]
    keys = torch.minimum(a, b) * corners + torch.maximum(a, b)
    known, at = keys.unique(return_inverse=True)
    ways = torch.zeros_like(known).index_add_(0, at, torch.where(a < b, 1, -1))
    return len(known), int(ways.count_nonzero())


def icosphere(subdivisions: int = 3) -> Tensor:
    """A ball of radius one from triangles, float64 `[20 * 4**subdivisions, 3, 3]`.

    Example:
        >>> icosphere(2).shape
        torch.Size([320, 3, 3])

    Raises:
        ArgumentError: There are not from 0 to 8 subdivisions.
    """
    golden = (1 + math.sqrt(5)) / 2
    signs = [(a, b * golden) for a in (1, -1) for b in (1, -1)]
    corners = [p for a, b in signs for p in ((0, a, b), (a, b, 0), (b, 0, a))]
    points = torch.tensor(corners, dtype=torch.float64)
    near = torch.cdist(points, points) < 2.1
    faces = torch.combinations(torch.arange(12), 3)
    a, b, c = faces.unbind(1)
    found = points[faces[near[a, b] & near[b, c] & near[c, a]]]
    outward = torch.linalg.det(found)[:, None, None] > 0
    found = torch.where(outward, found, found.flip(1))
    for _ in range(whole_number("subdivisions", subdivisions, 0, 8)):
        half = (found + found.roll(-1, 1)) / 2
        tips = [torch.stack([found[:, k], half[:, k], half[:, k - 1]], 1) for k in range(3)]
        found = torch.cat([*tips, half])
    return found / found.norm(dim=-1, keepdim=True)


def _place(centre: Sequence[float]) -> Tensor:
    try:
        found = torch.as_tensor([float(x) for x in centre], dtype=torch.float64)
    except (TypeError, ValueError):
        found = torch.empty(0)
    if found.shape != (3,) or not bool((found.abs() <= _FAR).all()):
        raise ArgumentError(
            f"`centre` must be three coordinates in cells (z, y, x), got {centre!r}"
        )
    return found


def _read(path: Path) -> Tensor:
    data = read_regular(path, _LARGEST_FILE)
    try:
        import trimesh
    except ImportError:
        raise MissingPartError(
            f"reading `{path}` needs trimesh: `pip install hotgrid[mesh]`, or give the corners "
            "of the triangles as a tensor"
        ) from None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            mesh = trimesh.load_mesh(io.BytesIO(data), file_type="stl", process=False)
            return torch.tensor(mesh.triangles, dtype=torch.float64)
    except Exception as problem:
        raise ArgumentError(f"`{path}` is not an STL file: {problem}") from problem
