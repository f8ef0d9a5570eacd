"""Meshes and blocks: plain integers that cover a grid exactly once."""

import itertools
import math
import subprocess
import sys

import pytest
from hypothesis import given, strategies as st

from hotgrid.cluster import Block, Mesh, shares
from hotgrid.errors import ArgumentError


@st.composite
def meshes_over_grids(draw):
    """A mesh and the size of a grid that has a cell or more for every rank."""
    shape = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    more = draw(st.lists(st.integers(1, 5), max_size=3 - len(shape)))
    size = [draw(st.integers(parts, 13)) for parts in shape] + more
    return Mesh(shape), tuple(size)


@given(st.integers(0, 500), st.integers(1, 40))
def test_shares_are_nearly_equal_and_add_up(count, parts):
    found = shares(count, parts)
    assert sum(found) == count and len(found) == parts
    assert max(found) - min(found) <= 1
    assert sorted(found, reverse=True) == list(found)


@given(meshes_over_grids())
def test_blocks_cover_every_cell_exactly_once(given_):
    mesh, size = given_
    owners = {}
    for rank, block in enumerate(mesh.blocks(size)):
        for cell in itertools.product(*block.indices):
            assert owners.setdefault(cell, rank) == rank, "two ranks own one cell"
    assert len(owners) == math.prod(size)


@given(meshes_over_grids())
def test_a_place_and_its_rank_are_one_to_one(given_):
    mesh, _ = given_
    places = [mesh.coordinate(rank) for rank in range(mesh.ranks)]
    assert [mesh.rank(place) for place in places] == list(range(mesh.ranks))
    assert places == list(itertools.product(*map(range, mesh.shape)))


@given(meshes_over_grids(), st.booleans())
def test_neighbours_see_each_other(given_, periodic):
    mesh, _ = given_
    for rank in range(mesh.ranks):
        for offset, other in mesh.neighbours(rank, periodic).items():
            back = tuple(-step for step in offset)
            assert mesh.neighbour(other, back, periodic) == rank


@given(meshes_over_grids(), st.data())
def test_a_margin_holds_the_cells_next_to_the_block(given_, data):
    mesh, size = given_
    widest = mesh.largest_margin(size)
    margin = [data.draw(st.integers(0, most)) for most in widest]
    periodic = data.draw(st.lists(st.booleans(), min_size=len(size), max_size=len(size)))
    mesh.check_margin(size, margin)
    for block in mesh.blocks(size):
        wide = block.padded(margin, periodic)
        for axis, (places, own) in enumerate(zip(wide.indices, block.indices, strict=True)):
            low, high = block.margins(margin, periodic)[axis]
            assert places[low : len(places) - high] == own
            assert all(
                (b - a) % size[axis] == 1 % size[axis] for a, b in itertools.pairwise(places)
            )
            inner = own[0] > 0 or periodic[axis]
            assert low == (margin[axis] if inner else 0)


def test_neighbours_with_and_without_ends_and_diagonals():
    mesh = Mesh("2x3")
    assert mesh.neighbours(0, periodic=False) == {(0, 1): 1, (1, 0): 3, (1, 1): 4}
    assert mesh.neighbours(0, diagonals=False) == {
        (-1, 0): 3,
        (0, -1): 2,
        (0, 1): 1,
        (1, 0): 3,
    }
    assert mesh.neighbour(0, (0, -1), periodic=(True, False)) is None
    assert Mesh("1x3").neighbour(1, (1, 0)) == 1


def test_one_margin_is_for_cut_axes_only():
    block = Mesh("1x2").block(0, (6, 8))
    assert block.padded(2).size == (6, 8)
    assert block.padded((2, 2)).size == (10, 8)
    assert block.padded((2, 2), periodic=False) == Block((0, 0), (6, 6), (6, 8))


@pytest.mark.parametrize("given_", ["2x3", "2X3", (2, 3), [2, 3], Mesh((2, 3))])
def test_a_mesh_is_written_in_many_ways(given_):
    assert Mesh(given_) == Mesh("2x3")
    assert (str(Mesh(given_)), repr(Mesh(given_))) == ("2x3", "Mesh('2x3')")


@pytest.mark.parametrize("given_", ["", "2x", "axb", "0x2", (), (2, 0), (2.5,), True, "-1"])
def test_a_mesh_that_is_invalid(given_):
    with pytest.raises(ArgumentError, match="joined by `x`"):
        Mesh(given_)


def test_axes_that_a_mesh_does_not_name_stay_whole():
    assert Mesh(4).over(3).shape == (4, 1, 1)
    assert Mesh("1x4").block(3, (10, 9)) == Block((0, 7), (10, 2), (10, 9))
    with pytest.raises(ArgumentError, match=r"mesh `2x2x2` has 3 axes, .*such as `2x2`"):
        Mesh("2x2x2").block(0, (8, 8))


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda: Mesh("8").block(0, (5, 9)),
            r"into 8 parts, but it has 5 cells: use at most 5",
        ),
        (lambda: Mesh("2x2").coordinate(4), r"no rank 4 in mesh `2x2`: use 0 to 3"),
        (lambda: Mesh("2x2").rank((0, 2)), r"\(0, 2\) is outside of mesh `2x2`"),
        (lambda: Mesh("2x2").neighbour(0, (1,)), r"`offset` \(1,\) has 1 values for 2 axes"),
        (lambda: Mesh("2x2").check_ranks(3), r"`2x2` needs 4 ranks, but 3 were started"),
        (
            lambda: Mesh("4x1").check_margin((20, 30), 8),
            r"margin of 8 .* at most 5, or fewer ranks there, such as mesh `2x1`",
        ),
        (lambda: Mesh("2").check_margin((6,), 7), r"at most 3$"),
        (lambda: Block((0,), (2,), (4,)).margins((-1,)), r"\(-1,\) must be 0 or more"),
        (lambda: shares(3, 0), r"cannot share 3 among 0"),
    ],
)
def test_misfits_are_reported_with_a_way_out(call, text):
    with pytest.raises(ArgumentError, match=text):
        call()


def test_the_mesh_that_is_proposed_fits():
    Mesh("2x1").check_margin((20, 30), 8)
    Mesh("4x1").check_margin((20, 30), 5)


def test_meshes_and_blocks_need_no_torch():
    program = (
        "import sys, types, pathlib, importlib\n"
        "import hotgrid\n"
        # The packages themselves load torch; these files must not be the reason.
        "for name in ('cluster', 'cluster._halo'):\n"
        "    package = types.ModuleType(f'hotgrid.{name}')\n"
        "    place = pathlib.Path(hotgrid.__file__).parent / name.replace('.', '/')\n"
        "    package.__path__ = [str(place)]\n"
        "    sys.modules[f'hotgrid.{name}'] = package\n"
        "for name in ('_block', '_mesh', '_halo._trips'):\n"
        "    importlib.import_module(f'hotgrid.cluster.{name}')\n"
        "assert 'torch' not in sys.modules\n"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
