"""Margins are filled with what the neighbours own, in every layout."""

import itertools

import pytest
import torch
from hypothesis import given, settings, strategies as st

from hotgrid.cluster import HaloExchange, Mesh, SingleRank, run_ranks, take
from hotgrid.errors import ArgumentError

LAYOUTS = [
    # mesh, size, margin: uneven, deep, rings of one and two, three axes
    ("2x2", (7, 9), 3),
    ("3x1", (10, 4), 3),
    ("1x2", (4, 9), 4),
    ("1x3", (5, 6), (2, 2)),
    ("4", (9, 3, 2), 2),
    ("2x1x2", (5, 3, 6), (2, 1, 3)),
    ("2x2x2", (4, 5, 6), 2),
]
PERIODIC = {"periodic": True, "bounded": False, "mixed": (False, True, False)}


def whole_of(before, size, dtype=torch.float64):
    count = torch.Size((*before, *size)).numel()
    return torch.arange(1, count + 1).reshape(*before, *size).to(dtype)


def spoilt(whole, halo):
    """A padded block with the owned cells right and -1 all around."""
    buffer = whole.new_zeros(
        (*whole.shape[: whole.ndim - len(halo.padded.size)], *halo.padded.size)
    )
    buffer = (buffer - 1) if buffer.dtype != torch.bool else ~buffer
    buffer[(..., *halo.inside)] = take(whole, halo.block)
    return buffer


@pytest.mark.parametrize("at_once", [False, True], ids=["by axis", "at once"])
@pytest.mark.parametrize("ends", PERIODIC)
@pytest.mark.parametrize(("mesh", "size", "margin"), LAYOUTS, ids=str)
def test_margins_and_corners_hold_the_neighbours(mesh, size, margin, ends, at_once):
    periodic = PERIODIC[ends]
    if not isinstance(periodic, bool):
        periodic = periodic[: len(size)]
    whole = whole_of((2,), size)

    def rank(c):
        halo = HaloExchange(c, mesh, size, margin, periodic, at_once=at_once)
        buffer = spoilt(whole, halo)
        halo.exchange(buffer)
        return buffer, halo.padded

    for buffer, padded in run_ranks(Mesh(mesh).ranks, rank):
        assert torch.equal(buffer, take(whole, padded))


@given(st.data())
@settings(max_examples=25)
def test_any_layout(data):
    mesh = Mesh(data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=2)))
    size = [data.draw(st.integers(parts, 7)) for parts in mesh.shape]
    margin = [data.draw(st.integers(0, most)) for most in mesh.largest_margin(size)]
    periodic = [data.draw(st.booleans()) for _ in size]
    at_once = data.draw(st.booleans())
    whole = whole_of((), size)

    def rank(c):
        halo = HaloExchange(c, mesh, size, margin, periodic, at_once=at_once)
        buffer = spoilt(whole, halo)
        halo.exchange(buffer)
        return torch.equal(buffer, take(whole, halo.padded))

    assert all(run_ranks(mesh.ranks, rank))


@pytest.mark.parametrize(
    "dtype",
    [torch.bool, torch.int32, torch.uint8, torch.float16, torch.bfloat16, torch.complex64],
    ids=str,
)
def test_every_dtype_travels_bit_by_bit(dtype):
    whole = torch.randint(0, 2, (3, 6, 5)).to(dtype)

    def rank(c):
        halo = HaloExchange(c, "2x2", (6, 5), 2)
        buffer = spoilt(whole, halo)
        halo.exchange(buffer)
        return torch.equal(buffer, take(whole, halo.padded))

    assert all(run_ranks(4, rank))


def test_several_buffers_share_their_messages():
    fields = [
        whole_of((9,), (6, 6), torch.float32),
        whole_of((), (6, 6)) > 10,
        whole_of((2, 3), (6, 6), torch.float16),
    ]

    def rank(c):
        halo = HaloExchange(c, "2x2", (6, 6), 1)
        buffers = [spoilt(field, halo) for field in fields]
        for _ in range(2):
            halo.exchange(*buffers)
        assert all(
            torch.equal(b, take(f, halo.padded)) for b, f in zip(buffers, fields, strict=True)
        )
        return halo.traffic

    for traffic in run_ranks(4, rank):
        assert (traffic.exchanges, traffic.messages) == (2, 8)


def test_messages_and_bytes():
    def traffic(mesh, size, margin, **options):
        def rank(c):
            halo = HaloExchange(c, mesh, size, margin, **options)
            halo.exchange(torch.zeros(*halo.padded.size, dtype=torch.float64))
            return halo.traffic.messages, halo.traffic.bytes

        return run_ranks(Mesh(mesh).ranks, rank)

    # 2 rows of 8, then 2 columns of 8 and both margins.
    by_axis = 2 * 2 * 8 * 8 + 2 * 2 * 12 * 8
    assert traffic("2x2", (16, 16), 2) == [(4, by_axis)] * 4
    assert traffic("2x2", (16, 16), 2, at_once=True) == [(8, by_axis)] * 4
    assert traffic("2x1", (16, 16), 2) == [(2, 2 * 2 * 16 * 8)] * 2
    assert traffic("2x1", (16, 16), 2, periodic=False) == [(1, 2 * 16 * 8)] * 2
    assert traffic("1x1", (16, 16), (2, 2)) == [(0, 0)]


D2Q9 = list(itertools.product((-1, 0, 1), repeat=2))
CROSSING = {
    (axis, side): [q for q, velocity in enumerate(D2Q9) if velocity[axis] == -side]
    for axis in (0, 1)
    for side in (-1, 1)
}


def pulled(wide, halo):
    """Each population from the cell that it left, for the owned cells."""
    rows, columns = halo.inside
    planes = []
    for q, (dy, dx) in enumerate(D2Q9):
        planes.append(
            wide[
                q,
                rows.start - dy : rows.stop - dy,
                columns.start - dx : columns.stop - dx,
            ]
        )
    return torch.stack(planes)


@pytest.mark.parametrize("at_once", [False, True], ids=["by axis", "at once"])
@pytest.mark.parametrize("mesh", ["2x2", "3x1"])
def test_only_crossing_populations_travel(mesh, at_once):
    size = (7, 8)
    whole = whole_of((9,), size)
    streamed = torch.stack([whole[q].roll(velocity, (0, 1)) for q, velocity in enumerate(D2Q9)])

    def rank(c):
        options = {"margin": (1, 1), "at_once": at_once}
        halo = HaloExchange(c, mesh, size, components=[CROSSING], **options)
        full = HaloExchange(c, mesh, size, **options)
        buffer = spoilt(whole, halo)
        halo.exchange(buffer)
        full.exchange(spoilt(whole, full))
        assert torch.equal(pulled(buffer, halo), take(streamed, halo.block))
        return halo.traffic.bytes / full.traffic.bytes

    assert all(ratio <= 1 / 3 for ratio in run_ranks(Mesh(mesh).ranks, rank))


def test_a_direction_that_needs_nothing_sends_nothing():
    def rank(c):
        halo = HaloExchange(c, "2", (6,), 1, components=[{(0, -1): [], (0, 1): [1]}])
        buffer = spoilt(whole_of((2,), (6,)), halo)
        halo.exchange(buffer)
        return halo.traffic.messages, buffer[:, [0, -1]].tolist()

    assert run_ranks(2, rank) == [(1, [[-1, -1], [-1, 10]]), (1, [[-1, -1], [-1, 7]])]


def test_work_may_go_on_between_start_and_finish():
    whole = whole_of((), (8, 8))

    def rank(c):
        halo = HaloExchange(c, "2x2", (8, 8), 2)
        buffer = spoilt(whole, halo)
        halo.start(buffer)
        inner = buffer[(..., *halo.inside)].sum()
        with pytest.raises(ArgumentError, match="call `finish` before `start`"):
            halo.start(buffer)
        halo.finish()
        with pytest.raises(ArgumentError, match="call `start` before `finish`"):
            halo.finish()
        assert torch.equal(buffer, take(whole, halo.padded))
        return inner

    assert sum(run_ranks(4, rank)) == whole.sum()


def test_a_strided_view_is_filled_in_place():
    whole = whole_of((), (6, 4))

    def rank(c):
        halo = HaloExchange(c, "2", (6, 4), 1)
        around = torch.full((halo.padded.size[0] + 2, halo.padded.size[1] + 2), -7.0)
        view = around.double()[1:-1, 1:-1]
        view.copy_(spoilt(whole, halo))
        halo.exchange(view)
        return torch.equal(view, take(whole, halo.padded))

    assert all(run_ranks(2, rank))


def test_extend_and_fold_are_transposes():
    """<extend(x), y> = <x, fold(y)>, summed over ranks, also with components left out."""
    for components, at_once in itertools.product((None, [CROSSING]), (False, True)):

        def rank(c, components=components, at_once=at_once):
            torch.manual_seed(c.rank)
            halo = HaloExchange(
                c, "2x2", (7, 5), 2, (True, False), components=components, at_once=at_once
            )
            x = torch.rand(9, *halo.block.size, dtype=torch.float64)
            y = torch.rand(9, *halo.padded.size, dtype=torch.float64)
            return (halo.extend(x) * y).sum(), (x * halo.fold(y)).sum()

        pairs = run_ranks(4, rank)
        forth, back = (sum(pair[k] for pair in pairs) for k in (0, 1))
        torch.testing.assert_close(forth, back, rtol=1e-14, atol=0)


def test_checking_finds_buffers_that_differ():
    def rank(c):
        halo = HaloExchange(c, "2", (6,), 1)
        halo.exchange(torch.zeros(3 + c.rank, *halo.padded.size))

    with pytest.raises(ArgumentError, match=r"rank 1: halo_exchange, .*\(4,\)"):
        run_ranks(2, rank, checking=True)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda: HaloExchange(SingleRank(), "2x1", (8, 8), 1),
            "needs 2 ranks, but 1 were started",
        ),
        (lambda: HaloExchange(SingleRank(), "1", (3,), (4,)), "margin of 4 does not fit"),
        (
            lambda: HaloExchange(SingleRank(), "1", (3,), (1,)).exchange(torch.zeros(2, 4)),
            r"rank 0 expects \(5,\) cells, the block with its margins.* got .* \(2, 4\)",
        ),
        (
            lambda: HaloExchange(SingleRank(), "1", (3,), (1,)).extend(torch.zeros(4)),
            r"the block,",
        ),
        (
            lambda: HaloExchange(SingleRank(), 1, (3,), (1,), components=[None]).exchange(
                torch.zeros(5), torch.zeros(5)
            ),
            "`components` is for 1 buffers, got 2",
        ),
    ],
)
def test_what_does_not_fit(call, text):
    with pytest.raises(ArgumentError, match=text):
        call()
