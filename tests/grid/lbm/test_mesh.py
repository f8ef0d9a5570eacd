"""Solids from meshes: cells inside by a slow twin and by mathematics, and files of any kind."""

import math
import os
import struct
import sys
from pathlib import Path

import pytest
import torch
from torch import Tensor

from hotgrid.errors import ArgumentError, DamagedError, MissingPartError
from hotgrid.grid import build_model, rollout
from hotgrid.grid.lbm import BodyFlow, HalfWay, ball, from_mesh, icosphere
from hotgrid.grid.lbm._boundary import _mesh, _voxels, closed_surface


def winding(triangles: Tensor, size: tuple[int, ...]) -> Tensor:
    """The slow twin: solid angles of all triangles seen from every cell, over 4 pi."""
    cells = torch.cartesian_prod(*(torch.arange(n, dtype=torch.float64) for n in size))
    a, b, c = (triangles[None, :, k] - cells[:, None] for k in range(3))
    la, lb, lc = (x.norm(dim=-1) for x in (a, b, c))
    volume = (a * torch.linalg.cross(b, c)).sum(-1)
    edges = (a * b).sum(-1) * lc + (b * c).sum(-1) * la + (c * a).sum(-1) * lb
    angle = 2 * torch.atan2(volume, la * lb * lc + edges)
    return angle.sum(1).reshape(size) / (4 * math.pi)


def turned(triangles: Tensor, seed: int) -> Tensor:
    """The triangles turned about the origin at random."""
    generator = torch.Generator().manual_seed(seed)
    q, _ = torch.linalg.qr(torch.randn(3, 3, generator=generator, dtype=torch.float64))
    return triangles @ (q * torch.linalg.det(q)).T


def sheet(points: Tensor) -> Tensor:
    """Triangles of a surface `[rows, columns, 3]` whose ends are joined both ways."""
    a, b = points, points.roll(-1, 0)
    c, d = points.roll(-1, 1), points.roll((-1, -1), (0, 1))
    halves = [torch.stack(each, 2) for each in ((a, b, c), (b, d, c))]
    return torch.cat([half.reshape(-1, 3, 3) for half in halves])


def torus(rows: int = 12, columns: int = 20) -> Tensor:
    u, v = (torch.arange(n, dtype=torch.float64) * math.tau / n for n in (rows, columns))
    reach = 3 + torch.cos(u)[:, None]
    flat = [
        reach * torch.cos(v),
        reach * torch.sin(v),
        torch.sin(u)[:, None].expand(-1, columns),
    ]
    return sheet(torch.stack(flat, -1))


def box(low: float, high: float) -> Tensor:
    """A cube along the axes, two triangles a face, seen from outside."""
    corners = torch.cartesian_prod(*[torch.tensor([low, high], dtype=torch.float64)] * 3)
    faces = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    return torch.stack([corners[[f[0], *f[k : k + 2]]] for f in faces for k in (1, 2)])


def octahedron(reach: float) -> Tensor:
    """Corners on the axes: lines along x meet them and edges exactly."""
    eye = reach * torch.eye(3, dtype=torch.float64)
    signs = torch.cartesian_prod(*[torch.tensor([1.0, -1.0], dtype=torch.float64)] * 3)
    found = signs[:, :, None] * eye
    outward = signs.prod(1)[:, None, None] > 0
    return torch.where(outward, found, found.flip(1))


def in_cells(triangles: Tensor, centre: tuple[float, ...], length: float) -> Tensor:
    """What `from_mesh` places where, in the order of the axes."""
    low, high = triangles.amin((0, 1)), triangles.amax((0, 1))
    scaled = (triangles - (low + high) / 2) * length / (high - low).max()
    return scaled.flip(-1) + torch.tensor(centre)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "shape", [icosphere(1), torus(), box(-1, 1)], ids=["ball", "ring", "box"]
)
def test_cells_are_those_of_the_winding_number(shape: Tensor, seed: int):
    mesh, size = turned(shape, seed), (13, 12, 14)
    placed = (6.1, 5.8, 6.4), 10.3
    found = from_mesh(mesh, *placed)(size)
    assert torch.equal(found, winding(in_cells(mesh, *placed), size).abs() > 0.5)
    assert found.any()


def test_parts_of_the_work_add_up(monkeypatch: pytest.MonkeyPatch):
    whole = from_mesh(torus(), (8, 8, 8), 12)((16, 16, 16))
    monkeypatch.setattr(_voxels, "_PAIRS", 50)
    assert torch.equal(from_mesh(torus(), (8, 8, 8), 12)((16, 16, 16)), whole)


def test_a_body_larger_than_the_grid_fills_it():
    assert from_mesh(icosphere(), (4, 4, 4), 1e6)((8, 8, 8)).all()
    assert not from_mesh(icosphere(), (4, 4, 1e6), 10)((8, 8, 8)).any()


@pytest.mark.parametrize("length", [4, 7.5, 6])
def test_lines_through_corners_and_edges_do_not_leak(length: float):
    """Corners and edges on lines of cells: what is far inside is solid, outside nothing is."""
    mesh = octahedron(1)
    found = from_mesh(mesh, (5, 5, 5), length)((11, 11, 11))
    at = torch.cartesian_prod(*[torch.arange(11.0)] * 3).reshape(11, 11, 11, 3)
    far = (at - 5).abs().sum(-1)
    assert found[far < length / 2 - 0.01].all()
    assert not found[far > length / 2 + 0.01].any()


def test_a_box_between_cells_has_its_volume_and_one_on_cells_is_half_open():
    assert from_mesh(box(0, 1), (4.5, 4.5, 4.5), 4)((10, 10, 10)).sum() == 4**3
    on_cells = from_mesh(box(0, 1), (4, 4, 4), 4)((10, 10, 10))
    assert on_cells.sum() == 4**3
    assert on_cells[3:6, 3:6, 3:6].all()


def test_a_shell_within_a_shell_is_hollow():
    hollow = torch.cat([box(-2, 2), box(-1, 1).flip(1)])
    found = from_mesh(hollow, (5.5, 5.5, 5.5), 8)((12, 12, 12))
    assert found.sum() == 8**3 - 4**3
    assert not found[5, 5, 5]


def test_bodies_that_overlap_are_one():
    both = torch.cat([box(0, 2), box(1, 3)])
    found = from_mesh(both, (5.5, 5.5, 5.5), 9)((12, 12, 12))
    assert found.sum() == 2 * 6**3 - 3**3


def test_the_volume_of_a_ball_converges():
    errors = []
    for n, fine in ((12, 2), (24, 3), (48, 4)):
        found = from_mesh(icosphere(fine), ((n - 1) / 2,) * 3, 0.8 * n)((n, n, n)).sum()
        errors.append(abs(found.item() / (4 / 3 * math.pi * (0.4 * n) ** 3) - 1))
    assert errors[2] < errors[1] < errors[0] < 0.1
    assert errors[2] < 0.01


def test_a_surface_with_a_hole_is_refused_with_its_open_edges():
    with pytest.raises(ArgumentError, match="3 of its 480 edges lack a triangle"):
        from_mesh(icosphere(2)[1:], (4, 4, 4), 4)
    with pytest.raises(ArgumentError, match="3 of its 480 edges"):
        inverted = icosphere(2)
        inverted[0] = inverted[0].flip(0)
        from_mesh(inverted, (4, 4, 4), 4)


def test_corners_that_nearly_meet_are_joined():
    noise = torch.rand(320, 3, 3, generator=torch.Generator().manual_seed(0)) * 1e-9
    assert len(closed_surface(icosphere(2) + noise)) == 320


@pytest.mark.parametrize(
    ("mesh", "words"),
    [
        (None, "`mesh` must be an STL file or a tensor of corners, got None"),
        (torch.zeros(4, 3), r"\[triangles, 3, 3\], got \(4, 3\)"),
        (torch.zeros(0, 3, 3), r"got \(0, 3, 3\)"),
        (torch.zeros(4, 3, 3), "no extent"),
        (torch.full((4, 3, 3), math.nan), "no extent"),
        (icosphere(0) * torch.tensor([1, 1, math.inf]), "no extent"),
    ],
)
def test_what_is_no_mesh_is_refused(mesh: Tensor, words: str):
    with pytest.raises(ArgumentError, match=words):
        from_mesh(mesh, (4, 4, 4), 4)


def test_places_and_grids_that_do_not_fit_are_refused():
    for centre in ((4, 4), (4, 4, math.nan), (4, 4, 1e9), "abc", None):
        with pytest.raises(ArgumentError, match=r"`centre` must be three coordinates in cells"):
            from_mesh(icosphere(), centre, 4)
    for length in (0, 1e9, math.nan):
        with pytest.raises(ArgumentError, match="`length`"):
            from_mesh(icosphere(), (4, 4, 4), length)
    with pytest.raises(ArgumentError, match="3 dims"):
        from_mesh(icosphere(), (4, 4, 4), 4)((8, 8))


def binary_stl(path: Path, triangles: Tensor) -> Path:
    rows = [struct.pack("<12fH", 0, 0, 0, *t.flatten().tolist(), 0) for t in triangles]
    path.write_bytes(bytes(80) + struct.pack("<I", len(rows)) + b"".join(rows))
    return path


def text_stl(path: Path, triangles: Tensor) -> Path:
    lines = ["solid body"]
    for triangle in triangles.tolist():
        lines += ["facet normal 0 0 0", "outer loop"]
        lines += [f"vertex {x:.7e} {y:.7e} {z:.7e}" for x, y, z in triangle]
        lines += ["endloop", "endfacet"]
    path.write_text("\n".join([*lines, "endsolid body", ""]))
    return path


@pytest.mark.parametrize("write", [binary_stl, text_stl])
def test_a_file_is_read(write, tmp_path: Path):
    mesh = turned(torus(), 5)
    path = write(tmp_path / "ring.stl", mesh)
    placed = (8.2, 8.1, 7.9), 12.0
    size = (16, 17, 18)
    assert torch.equal(from_mesh(path, *placed)(size), from_mesh(mesh, *placed)(size))
    assert torch.equal(from_mesh(str(path), *placed)(size), from_mesh(mesh, *placed)(size))


def test_an_open_file_is_refused_by_name(tmp_path: Path):
    path = binary_stl(tmp_path / "open.stl", icosphere(1)[2:])
    with pytest.raises(ArgumentError, match=r"open\.stl` is not closed: \d+ of its \d+ edges"):
        from_mesh(path, (4, 4, 4), 4)


@pytest.mark.parametrize(
    "data",
    [b"", b"solid nothing\nendsolid\n", b"\xff" * 500, b"solid x\nvertex 1 2\nendsolid x\n"],
    ids=["empty", "no triangles", "bytes", "half a corner"],
)
def test_what_is_not_stl_is_refused_by_name(data: bytes, tmp_path: Path):
    path = tmp_path / "body.stl"
    path.write_bytes(data)
    with pytest.raises(ArgumentError, match=r"body\.stl`"):
        from_mesh(path, (4, 4, 4), 4)


def test_a_file_cut_short_is_refused(tmp_path: Path):
    path = binary_stl(tmp_path / "ball.stl", icosphere(1))
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(ArgumentError, match=r"ball\.stl`"):
        from_mesh(path, (4, 4, 4), 4)


def test_only_regular_files_of_a_bounded_size_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    path = binary_stl(tmp_path / "ball.stl", icosphere(1))
    with pytest.raises(DamagedError, match="is missing"):
        from_mesh(tmp_path / "none.stl", (4, 4, 4), 4)
    (tmp_path / "link.stl").symlink_to(path)
    os.mkfifo(tmp_path / "pipe.stl")
    for name in ("link.stl", "pipe.stl"):
        with pytest.raises(DamagedError, match="not a regular file"):
            from_mesh(tmp_path / name, (4, 4, 4), 4)
    monkeypatch.setattr(_mesh, "_LARGEST_FILE", 1000)
    with pytest.raises(DamagedError, match="larger than 1000"):
        from_mesh(path, (4, 4, 4), 4)


def test_without_a_reader_the_message_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    path = binary_stl(tmp_path / "ball.stl", icosphere(1))
    monkeypatch.setitem(sys.modules, "trimesh", None)
    with pytest.raises(MissingPartError, match=r"ball\.stl` needs trimesh.*hotgrid\[mesh\]"):
        from_mesh(path, (4, 4, 4), 4)


def test_a_body_flow_takes_a_file(tmp_path: Path):
    path = binary_stl(tmp_path / "ball.stl", icosphere())
    size = (10, 12, 20)
    model = build_model(BodyFlow, {"solid": str(path), "reynolds": "20"})
    assert torch.equal(model.solid(size), BodyFlow().solid(size))
    assert torch.equal(model.changed(reynolds=30).solid(size), model.solid(size))


def test_a_body_that_does_not_fit_is_refused():
    with pytest.raises(ArgumentError, match=r"\(4, 4, 20\).*holds no cell"):
        BodyFlow(extent=0.1).body((4, 4, 20))
    with pytest.raises(ArgumentError, match="reaches a face"):
        BodyFlow(extent=1.2).body((12, 12, 40))


def test_the_drag_of_a_triangulated_ball_is_that_of_a_ball():
    size, model = (12, 12, 24), BodyFlow(reynolds=10)
    state = model.initial(size, torch.Generator())
    later = rollout(model, state, 150)
    centre = ((size[0] - 1) / 2, (size[1] - 1) / 2, (size[2] - 1) / 4)
    exact = BodyFlow(reynolds=10)
    exact.boundaries = tuple(
        HalfWay(ball(centre, model.length(size) / 2)) if b.obstacle else b
        for b in exact.boundaries
    )
    other = rollout(exact, state, 150)
    found, expected = model.drag_coefficient(later), exact.drag_coefficient(other)
    assert found.item() == pytest.approx(expected.item(), rel=0.05)
    assert expected > 4
