"""Heat: every Fourier mode decays as the discrete operator says, and at second order."""

import inspect
import math
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from hypothesis import given, strategies as st
from torch import Tensor

from hotgrid.cli._main import run as command
from hotgrid.errors import ArgumentError
from hotgrid.grid import Simulation
from hotgrid.grid.pde import Heat

SIZES = {1: (24,), 2: (12, 18), 3: (6, 8, 10)}


def run(model: Heat, u: Tensor, steps: int) -> Tensor:
    sim = Simulation(
        model, size=u.shape, state={"u": u}, dtype=torch.float64, compiled=False, device="cpu"
    )
    sim.run(steps)
    return sim.state["u"]


def cosine(size: tuple[int, ...], turns: tuple[int, ...], phase: float = 0.0) -> Tensor:
    """A plane wave that goes round `turns` times along each dim."""
    axes = [
        2 * math.pi * k * torch.arange(n, dtype=torch.float64) / n
        for n, k in zip(size, turns, strict=True)
    ]
    return torch.cos(torch.stack(torch.meshgrid(*axes, indexing="ij")).sum(0) + phase)


@given(
    rank=st.sampled_from([1, 2, 3]),
    share=st.floats(0, 1),
    turns=st.tuples(*[st.integers(0, 5)] * 3),
    phase=st.floats(0, 6),
    steps=st.integers(1, 12),
)
def test_a_mode_keeps_its_shape_and_decays_by_its_eigenvalue(
    rank: int, share: float, turns: tuple[int, ...], phase: float, steps: int
):
    size, rate = SIZES[rank], share * 0.5 / rank
    start = cosine(size, turns[:rank], phase)
    angles = [math.pi * k / n for k, n in zip(turns[:rank], size, strict=True)]
    factor = 1 - 4 * rate * sum(math.sin(angle) ** 2 for angle in angles)
    torch.testing.assert_close(
        run(Heat(rate=rate), start, steps), factor**steps * start, rtol=0, atol=1e-13
    )


def error_against_the_continuous_solution(rank: int, rate: float, n: int) -> float:
    """At the same time for every `n`, since a step is `rate / n^2` on a unit domain."""
    steps = n * n // 5
    start = cosine((n,) * rank, (1,) * rank)
    decay = math.exp(-rank * (2 * math.pi) ** 2 * steps * rate / n**2)
    return (run(Heat(rate=rate), start, steps) - decay * start).abs().max().item()


@pytest.mark.parametrize("rank", [1, 2])
def test_it_is_of_second_order_against_the_continuous_solution(rank: int):
    errors = [error_against_the_continuous_solution(rank, 0.1, n) for n in (10, 20, 40)]
    orders = [math.log2(coarse / fine) for coarse, fine in pairwise(errors)]
    assert orders == pytest.approx([2, 2], abs=0.1)


def test_a_sixth_cancels_the_error_of_second_order_on_a_line():
    """The known special rate: errors of time and space cancel, and order four is left."""
    errors = [error_against_the_continuous_solution(1, 1 / 6, n) for n in (10, 20)]
    assert math.log2(errors[0] / errors[1]) == pytest.approx(4, abs=0.2)


def test_nothing_gets_hotter_than_the_hottest_or_colder_than_the_coldest():
    sim = Simulation(Heat(rate=0.25), size=(20, 30), compiled=False, device="cpu")
    sim.run(50)
    assert sim.state["u"].min() >= 0
    assert sim.state["u"].max() <= 1


@pytest.mark.parametrize(("rank", "limit"), [(2, "0.25"), (3, "0.1667")])
def test_a_rate_that_is_unstable_in_so_many_dims_is_refused(rank: int, limit: str):
    text = f"`rate` must be at most {limit} for steps to be stable in {rank} dims, got 0.3"
    with pytest.raises(ArgumentError, match=text):
        Simulation(Heat(rate=0.3), size=(8,) * rank, compiled=False)


def test_a_rate_that_is_unstable_anywhere_is_refused_at_once():
    with pytest.raises(ArgumentError, match=r"`rate` must be from 0 to 0\.5, got 0\.51"):
        Heat(rate=0.51)


@pytest.mark.parametrize("size", [(1,), (5,), (2, 3), (2, 2, 2)])
def test_the_smallest_grids_start_with_some_heat(size: tuple[int, ...]):
    for seed in range(5):
        sim = Simulation(Heat(), size=size, seed=seed, compiled=False, device="cpu")
        assert sim.observe()["heat"] >= 1


def test_its_file_can_be_copied(tmp_path, capsys):
    """It is the model that the docs tell users to copy."""
    copy = tmp_path / "spread.py"
    copy.write_text(Path(inspect.getfile(Heat)).read_text().replace("class Heat", "class Mine"))
    options = ["--size", "8x8", "--steps", "3", "--device", "cpu", "-c", "compile.enabled=off"]
    assert command(["run", f"{copy}:Mine", *options]) == 0
    assert "Traceback" not in capsys.readouterr().err
