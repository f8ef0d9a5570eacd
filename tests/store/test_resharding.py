"""Saved on one mesh, loaded on another: the same bits, whatever the cuts."""

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings, strategies as st

from hotgrid.cluster import Communicator, run_ranks
from hotgrid.errors import ArgumentError
from hotgrid.store import Checkpoints, Shard
from hotgrid.store._shard import Region, fault_in_cover, whole

from .ranks import memory_folder, on_ranks, same_bits

DTYPES = [
    *(torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn),
    *(torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.uint16, torch.bool),
]
SHAPES = st.lists(st.integers(1, 7), min_size=1, max_size=3).map(tuple)


@st.composite
def cuts(draw: st.DrawFn, region: Region, depth: int = 3) -> list[Region]:
    """Boxes that make up a region: cut in two along some dim, again and again."""
    dims = [dim for dim, size in enumerate(region.shape) if size > 1]
    if depth == 0 or not dims or not draw(st.booleans()):
        return [region]
    dim = draw(st.sampled_from(dims))
    at = draw(st.integers(1, region.shape[dim] - 1))
    halves = []
    for start, size in ((0, at), (at, region.shape[dim] - at)):
        offset, shape = list(region.offset), list(region.shape)
        offset[dim] += start
        shape[dim] = size
        halves += draw(cuts(Region(tuple(offset), tuple(shape)), depth - 1))
    return halves


@st.composite
def reshardings(draw: st.DrawFn) -> tuple[torch.Tensor, list[Region], list[Region]]:
    shape = draw(SHAPES)
    dtype = draw(st.sampled_from(DTYPES))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**32)))
    width = 1 if dtype == torch.bool else dtype.itemsize
    bits = torch.randint(
        0, 256, (math.prod(shape) * width,), dtype=torch.uint8, generator=generator
    )
    cells = bits > 127 if dtype == torch.bool else bits.view(dtype)
    return cells.reshape(shape), draw(cuts(whole(shape))), draw(cuts(whole(shape)))


def cut_out(tensor: torch.Tensor, region: Region) -> torch.Tensor:
    return tensor[region.within(whole(tensor.shape))]


@given(reshardings())
@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
def test_any_cut_can_be_loaded_as_any_other(case: Any):
    tensor, saved, wanted = case
    shape = tuple(tensor.shape)
    with memory_folder() as folder:

        def save(group: Any) -> None:
            region = saved[group.rank]
            piece = Shard(cut_out(tensor, region), region.offset, shape)
            Checkpoints(folder, group=group).save(5, {"u": piece})

        assert on_ranks(len(saved), save) == [None] * len(saved)
        alone = Checkpoints(folder)
        assert same_bits(alone.load().tensors["u"], tensor)
        for region in wanted:
            part = torch.empty(region.shape, dtype=tensor.dtype)
            alone.load(wanted={"u": Shard(part, region.offset, shape)})
            assert same_bits(part, cut_out(tensor, region))
            slices = {"u": region.within(whole(shape))}
            assert same_bits(alone.load(wanted=slices).tensors["u"], part)


def test_a_mesh_of_another_shape_goes_on(tmp_path: Path):
    """2x2 to 3x1, a scalar and a table that all ranks share beside the field."""
    field = torch.rand(9, 8, 12)
    shared = {"table": torch.arange(5), "time": torch.tensor(0.5, dtype=torch.float64)}

    def piece(y: slice, x: slice) -> Shard:
        return Shard(field[:, y, x].clone(), (0, y.start, x.start), (9, 8, 12))

    def save(group: Any) -> None:
        y, x = divmod(group.rank, 2)
        mine = piece(slice(4 * y, 4 * y + 4), slice(6 * x, 6 * x + 6))
        Checkpoints(tmp_path, group=group).save(3, {"f": mine, **shared}, extra={"n": 3})

    def load(group: Any) -> tuple[Any, ...]:
        mine = piece(slice(*((0, 3), (3, 6), (6, 8))[group.rank]), slice(0, 12))
        expected = mine.tensor.clone()
        mine.tensor.zero_()
        into = {"f": mine, "table": torch.zeros(5, dtype=torch.int64), "time": None}
        loaded = Checkpoints(tmp_path, group=group).load(wanted=into)
        assert same_bits(mine.tensor, expected)
        return loaded.step, loaded.extra, loaded.tensors["time"].item(), into["table"].tolist()

    assert on_ranks(4, save) == [None] * 4
    # What all ranks share is written once, by the first of them.
    sizes = [(tmp_path / "step-000000003" / f"rank-0000{r}.safetensors").stat().st_size
             for r in range(4)]  # fmt: skip
    assert sizes[0] > sizes[1] == sizes[2] == sizes[3]
    assert on_ranks(3, load) == [(3, {"n": 3}, 0.5, [0, 1, 2, 3, 4])] * 3


def test_ranks_without_cells_and_ranks_that_hold_the_same(tmp_path: Path):
    cells = torch.arange(6)

    def save(group: Any) -> None:
        # Rows 0-2 twice, rows 3-5 twice, and a rank with nothing.
        start, stop = ((0, 3), (3, 6), (0, 3), (3, 6), (6, 6))[group.rank]
        Checkpoints(tmp_path, group=group).save(
            1, {"u": Shard(cells[start:stop], (start,), (6,))}
        )

    assert on_ranks(5, save) == [None] * 5
    names = sorted(path.name for path in (tmp_path / "step-000000001").iterdir())
    assert names == ["manifest.json", "rank-00000.safetensors", "rank-00001.safetensors"]
    assert torch.equal(Checkpoints(tmp_path).load().tensors["u"], cells)


@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        ([(0, 3), (4, 6)], r"`u` of shape \(6,\) cannot be saved: the pieces hold 5 of its 6"),
        ([(0, 4), (3, 6)], r"the pieces \[0:4\] and \[3:6\] overlap"),
        ([(0, 6), (0, 5)], r"the pieces \[0:6\] and \[0:5\] overlap"),
    ],
)
def test_pieces_that_are_not_the_whole_are_refused_on_every_rank(
    tmp_path: Path, pieces: list[tuple[int, int]], text: str
):
    def save(group: Any) -> None:
        start, stop = pieces[group.rank]
        shard = Shard(torch.zeros(stop - start), (start,), (6,))
        Checkpoints(tmp_path, group=group).save(1, {"u": shard})

    for problem in on_ranks(2, save):
        with pytest.raises(ArgumentError, match=text):
            raise problem
    assert list(tmp_path.iterdir()) == []


def test_ranks_must_agree_about_tensors_and_steps(tmp_path: Path):
    def other_types(group: Any) -> None:
        cells = torch.zeros(3, dtype=(torch.float32, torch.float64)[group.rank])
        Checkpoints(tmp_path, group=group).save(1, {"u": Shard(cells, (3 * group.rank,), (6,))})

    def other_steps(group: Any) -> None:
        Checkpoints(tmp_path, group=group).save(group.rank, {})

    for problem in on_ranks(2, other_types):
        with pytest.raises(
            ArgumentError, match=r"do not agree about `u`: F64 \(6,\) on rank 1"
        ):
            raise problem
    for problem in on_ranks(2, other_steps):
        with pytest.raises(ArgumentError, match=r"the ranks save different steps: \[0, 1\]"):
            raise problem
    assert list(tmp_path.iterdir()) == []


@given(SHAPES.flatmap(lambda shape: st.tuples(st.just(shape), cuts(whole(shape)))), st.data())
def test_a_cover_is_known_from_its_cells(case: Any, data: st.DataObject):
    """The sweep against counting every cell."""
    shape, regions = case
    changed = [r for r in regions if data.draw(st.integers(0, 9)) > 0]
    if data.draw(st.booleans()):
        changed += data.draw(st.permutations(regions))[:1]
    count = torch.zeros(shape, dtype=torch.int64)
    for region in changed:
        cut_out(count, region).add_(1)
    fault = fault_in_cover(shape, changed)
    if (count == 1).all():
        assert fault is None
    elif (count > 1).any():
        assert fault is not None
        assert "overlap" in fault
    else:
        assert fault == f"the pieces hold {int(count.sum())} of its {count.numel()} elements"


def test_a_communicator_is_a_group(tmp_path: Path):
    """Real gloo between the ranks, and saves in the background."""
    cells = torch.arange(12.0).view(3, 4)

    def work(communicator: Communicator) -> list[float]:
        row = Shard(cells[communicator.rank :][:1].clone(), (communicator.rank, 0), (3, 4))
        with Checkpoints(tmp_path, keep_last=1, group=communicator) as checkpoints:
            for step in (1, 2):
                checkpoints.save(step, {"u": row}, asynchronous=True)
            column = checkpoints.load(wanted={"u": f":, {communicator.rank}:"})
            return column.tensors["u"][:, 0].tolist()

    assert run_ranks(3, work) == [cells[:, i].tolist() for i in range(3)]
    assert Checkpoints(tmp_path).steps() == [2]
