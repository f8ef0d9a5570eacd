"""Frames against a slow twin: what the header says, and every byte."""

import struct
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st

from hotgrid.grid import Field, Model, Parameter, Simulation, lbm, life, pde
from hotgrid.grid.view import Eye, Gaze
from hotgrid.grid.view._look import box_of
from hotgrid.grid.view._reduce import block_counts, block_sums, rows_then_columns
from hotgrid.grid.view._source import WholeGrid

WHOLE = (0.0, 0.0, 1e9, 1e9)


def simulation(model: Model, size: tuple[int, ...], **more: Any) -> Simulation:
    return Simulation(model, size=size, device="cpu", compiled=False, **more)


def parsed(data: bytes) -> dict[str, Any]:
    """The slow twin of the page's parser, written from the table in the docs."""
    assert data[:4] == b"HGF1"
    number, step, time = struct.unpack_from("<Idd", data, 4)
    kind, colours, look, depth, height, width = struct.unpack_from("<BBHIII", data, 24)
    low, high, *region = struct.unpack_from("<ff4f", data, 40)
    rows, columns, scale, share = struct.unpack_from("<HHfB", data, 64)
    bytes_ = height * (-(-width // 8) if kind == 1 else width) * depth
    body = np.frombuffer(data, np.uint8, bytes_, 80)
    if kind == 1:
        body = np.unpackbits(body.reshape(height, -1), axis=1)[:, :width]
    arrows = np.frombuffer(data, np.int8, rows * columns * 2, 80 + bytes_)
    assert len(data) == 80 + bytes_ + rows * columns * 2
    return {
        "number": number, "step": step, "time": time, "kind": kind, "colours": colours,
        "look": look, "low": low, "high": high, "region": tuple(map(int, region)),
        "values": body.reshape(depth, height, width), "share": share, "scale": scale,
        "arrows": arrows.reshape(rows, columns, 2),
    }  # fmt: skip


def shown(sim: Simulation, look: Gaze) -> dict[str, Any]:
    return parsed(Eye(sim).frame(look).packed(7, look.number, 255))


def test_cells_are_bits_and_numbers_are_bytes():
    sim = simulation(life.Life(), (37, 51), seed=2)
    sim.run(3)
    found = shown(sim, Gaze("alive", WHOLE))
    assert (found["kind"], found["colours"], found["region"]) == (1, 2, (0, 0, 37, 51))
    assert (found["number"], found["step"], found["time"]) == (7, 3.0, 3.0)
    assert np.array_equal(found["values"][0], sim.cells().numpy())
    heat = simulation(pde.Heat(), (37, 51))
    heat.run(3)
    found = shown(heat, Gaze("u", WHOLE, range=(0.0, 0.5), number=70000))
    u = heat.state["u"].numpy()
    assert found["look"] == 70000 % 65536
    assert np.array_equal(found["values"][0], np.floor(np.clip(u / 0.5, 0, 1) * 254 + 0.5))


class Numbered(Model):
    """Every cell holds its index; nothing moves."""

    fields = (Field("u"),)
    ranks = (2, 3)
    still = Parameter(0.0)

    def step(self, state: Any, inputs: Any, params: Any) -> Any:
        return {"u": state["u"].here + params["still"]}

    def initial(self, size: tuple[int, ...], generator: torch.Generator) -> dict[str, Any]:
        return {"u": torch.arange(float(np.prod(size))).view(size)}


SIM = simulation(Numbered(), (61, 83))


@settings(max_examples=60, deadline=None)
@given(
    st.tuples(*[st.floats(-20, 100)] * 4),
    st.tuples(st.integers(1, 90), st.integers(1, 90)),
)
def test_a_region_is_covered_and_reduced_by_means(
    corners: tuple[float, float, float, float], pixels: tuple[int, int]
):
    ys, xs = sorted((corners[0], corners[2])), sorted((corners[1], corners[3]))
    region = (ys[0], xs[0], ys[1], xs[1])
    found = shown(SIM, Gaze("u", region, pixels, range=(0.0, 61.0 * 83)))
    y0, x0, y1, x1 = found["region"]
    assert 0 <= y0 < y1 <= 61 and 0 <= x0 < x1 <= 83
    # All visible cells are in it.
    for low, high, n, a, b in ((ys[0], ys[1], 61, y0, y1), (xs[0], xs[1], 83, x0, x1)):
        if low < high and high > 0 and low < n - 1:
            assert a <= max(low, 0) + 1e-9 and b >= min(high, n) - 1e-9
    values = found["values"][0]
    # Not from the size of the frame: its last row and column may stand for fewer cells.
    factor = box_of(Gaze("u", region, pixels), SIM.size).factor
    assert values.shape == (-(-(y1 - y0) // factor), -(-(x1 - x0) // factor))
    u = SIM.state["u"].double().numpy()[y0:y1, x0:x1]
    for i in range(values.shape[0]):
        for j in range(values.shape[1]):
            block = u[i * factor : (i + 1) * factor, j * factor : (j + 1) * factor]
            wanted = block.mean() / (61 * 83) * 254
            assert abs(values[i, j] - wanted) <= 0.51


def test_a_large_grid_is_sent_as_a_screenful():
    sim = simulation(life.Life(), (2048, 2048))
    found = shown(sim, Gaze("alive", WHOLE, (300, 400)))
    assert found["values"].shape == (1, 293, 293)
    assert found["kind"] == 0 and found["colours"] == 2
    assert 254 * 0.2 < found["values"].mean() < 254 * 0.4


def test_solid_cells_and_numbers_that_are_not_finite_are_255():
    sim = simulation(lbm.Karman(), (48, 144))
    sim.run(2)
    found = shown(sim, Gaze("speed", WHOLE))
    assert np.array_equal(found["values"][0] == 255, sim.model.solid(sim.size).numpy())
    bad = simulation(Numbered(), (4, 4))
    u = bad.state["u"]
    u[1, 2] = torch.nan
    bad.state = {"u": u}
    found = shown(bad, Gaze("u", WHOLE))
    assert (found["values"] == 255).sum() == 1 and found["values"][0, 1, 2] == 255


def test_the_range_follows_calmly_and_can_be_locked():
    sim = simulation(Numbered(), (16, 16))
    eye = Eye(sim)
    first = eye.frame(Gaze("u", WHOLE)).colours
    assert (first.low, first.high) == (0, 255)
    sim.state = {"u": sim.state["u"] / 10}
    second = eye.frame(Gaze("u", WHOLE)).colours
    assert 25.5 < second.high < 255
    locked = eye.frame(Gaze("u", WHOLE, range=(-3.0, 3.0))).colours
    assert (locked.kind, locked.low, locked.high) == ("signed", -3, 3)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_three_dims_are_slices_and_a_volume(axis: int):
    sim = simulation(Numbered(), (12, 20, 28))
    u = sim.state["u"]
    found = shown(sim, Gaze("u", WHOLE, axis=axis, slice=5, range=(0.0, float(u.numel()))))
    wanted = u.select(axis, 5).numpy() / u.numel() * 254
    assert np.abs(found["values"][0] - wanted).max() <= 0.51
    volume = shown(sim, Gaze("u", WHOLE, volume=True))
    assert (volume["kind"], volume["values"].shape) == (2, (12, 20, 28))


def test_arrows_are_the_mean_velocity():
    sim = simulation(lbm.Karman(), (48, 144))
    sim.run(20)
    found = shown(sim, Gaze("speed", WHOLE, arrows=12))
    assert found["arrows"].shape == (4, 12, 2)
    ux = sim.view("velocity_x")[:12, :12].mean()
    assert abs(found["arrows"][0, 0, 1] / 127 * found["scale"] - ux) < found["scale"] / 100
    assert (
        shown(simulation(pde.Heat(), (8, 8)), Gaze("u", WHOLE, arrows=12))["arrows"].size == 0
    )


def test_one_dim_is_a_row_and_a_value_can_be_asked():
    sim = simulation(pde.Heat(), (40,))
    assert shown(sim, Gaze("u", WHOLE))["values"].shape == (1, 1, 40)
    assert Eye(SIM).value(Gaze("u", WHOLE), (2, 3)) == 2 * 83 + 3
    assert Eye(SIM).value(Gaze("u", WHOLE), (-5, 1000)) == 82


@pytest.mark.parametrize(
    ("model", "size", "name"),
    [
        (lbm.Karman(), (48, 144), "vorticity"),
        (lbm.DoubleShear(), (48, 64), "speed"),
        (life.Life(), (40, 96), "alive"),
        (pde.Heat(), (50, 61), "u"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
@pytest.mark.parametrize("region", [WHOLE, (0.0, 3.0, 17.0, 31.0), (11.0, 20.0, 47.0, 64.0)])
def test_a_box_is_a_part_of_the_whole_view(model, size, name, region):
    sim = simulation(model, size, seed=1)
    sim.run(5)
    box = box_of(Gaze(name, region, (4096, 4096)), size)
    found = WholeGrid(sim).pixels(name, box)
    assert torch.equal(found, sim.view(name)[box.slices])


@settings(max_examples=60, deadline=None)
@given(
    st.tuples(st.integers(1, 40), st.integers(1, 40)),
    st.tuples(st.integers(1, 9), st.integers(1, 9)),
    st.tuples(st.integers(0, 20), st.integers(0, 20)),
)
def test_sums_over_blocks_are_those_of_a_loop(shape, factors, start):
    x = torch.arange(float(np.prod(shape))).view(shape)
    found = block_sums(x, start, factors)
    wanted = torch.zeros_like(found)
    first = [at // f for at, f in zip(start, factors, strict=True)]
    for i in range(shape[0]):
        for j in range(shape[1]):
            y, x_ = (start[0] + i) // factors[0] - first[0], (start[1] + j) // factors[1]
            wanted[y, x_ - first[1]] += x[i, j]
    assert torch.equal(found, wanted)
    whole = [n + at for n, at in zip(shape, start, strict=True)]
    counts = block_counts(whole, factors, "cpu")
    assert torch.equal(counts, block_sums(torch.ones(whole), (0, 0), factors))


def test_a_fused_view_is_the_plain_one():
    """What a GPU does for every view that is looked at for a while, here on a CPU."""
    sim = simulation(lbm.Karman(), (48, 144))
    sim.run(20)
    plain, fast = WholeGrid(sim), WholeGrid(sim, fused=True)
    box = box_of(Gaze("vorticity", WHOLE, (13, 40)), sim.size)
    first = fast.pixels("vorticity", box)
    for _ in range(fast.fused.steady):
        assert torch.equal(fast.pixels("vorticity", box), first)
    assert fast.fused.compiled == 1
    sim.run(20)
    after = fast.pixels("vorticity", box)
    assert torch.allclose(after, plain.pixels("vorticity", box), atol=1e-7)
    assert not torch.equal(after, first)


@pytest.mark.parametrize(
    ("size", "factors"), [((12, 20), (3, 4)), ((12, 20), (3, 1)), ((4, 6, 8), (2, 3, 4))]
)
def test_rows_then_columns_are_the_sums_of_blocks(size: tuple[int, ...], factors):
    x = torch.randint(-9, 9, size).float()
    found, wanted = rows_then_columns(x, factors), block_sums(x, (0,) * len(size), factors)
    assert torch.equal(found, wanted)


@pytest.mark.parametrize("region", [(0.0, 0.0, 9.0, 9.0), WHOLE])
def test_a_locked_range_keeps_the_colours_of_two_states(region: tuple[float, ...]):
    sim = simulation(life.Life(), (64, 96))
    free = shown(sim, Gaze("alive", region, (40, 40)))
    locked = shown(sim, Gaze("alive", region, (40, 40), range=(0.0, 1.0)))
    assert free["colours"] == locked["colours"] == 2 and free["kind"] == locked["kind"]
    assert np.array_equal(free["values"], locked["values"])
    wider = shown(sim, Gaze("alive", region, (40, 40), range=(0.0, 2.0)))
    assert (wider["colours"], wider["kind"], wider["high"]) == (2, 0, 2.0)
    assert 0 < wider["values"].max() <= 127
    box = simulation(life.Life3D(), (8, 8, 8))
    assert shown(box, Gaze("alive", WHOLE, range=(0.0, 1.0), volume=True))["colours"] == 2
