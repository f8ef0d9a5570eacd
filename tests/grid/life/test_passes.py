"""Packed Life by hand, on the CPU and under Triton's interpreter, against its plain step."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings, strategies as st

from hotgrid import _native
from hotgrid.errors import ArgumentError
from hotgrid.grid import Simulation
from hotgrid.grid.life import Life

counts = st.sets(st.integers(0, 8)).map(lambda found: "".join(map(str, sorted(found))))


@settings(deadline=None, max_examples=40)
@given(
    birth=counts,
    survival=counts,
    topology=st.sampled_from(["torus", "plane"]),
    rows=st.integers(1, 40),
    words=st.integers(1, 5),
    steps=st.integers(0, 40),
    seed=st.integers(0, 99),
)
def test_the_core_has_the_bits_of_the_plain_step(
    birth, survival, topology, rows, words, steps, seed
):
    model = Life(f"B{birth}/S{survival}", topology=topology, density=0.4)
    sims = [
        Simulation(
            model, size=(rows, 32 * words), seed=seed, compiled=False, form=form, device="cpu"
        )
        for form in ("roll", "native")
    ]
    for sim in sims:
        sim.run(steps, progress=False)
    assert torch.equal(sims[0].cells(), sims[1].cells())


def test_a_run_cut_anywhere_is_the_same_run():
    whole, cut = (Simulation(Life(), size=(64, 64), form="native") for _ in range(2))
    whole.run(61, progress=False)
    for steps in (1, 0, 17, 3, 40):
        cut.run(steps, progress=False)
    assert torch.equal(whole.cells(), cut.cells())


def test_the_core_is_what_packed_life_runs_on():
    assert Simulation(Life(), size=(64, 64), device="cpu", compiled=True).form == "native"


def test_a_gpu_form_says_why_it_cannot_run():
    with pytest.raises(ArgumentError, match="`triton` cannot run here: it runs on a GPU, not"):
        Simulation(Life(), size=(64, 64), device="cpu", form="triton")


@pytest.mark.parametrize(
    ("to", "given_", "rest", "said"),
    [
        ((4, 2), (4, 3), (8, 12, True, 1), "same shape"),
        ((4, 2), (4, 2), (512, 12, True, 1), "nine bits"),
        ((4, 2), (4, 2), (8, -1, True, 1), "nine bits"),
        ((4, 2), (4, 2), (8, 12, True, -1), "negative"),
    ],
)
def test_the_core_refuses_what_does_not_fit(to, given_, rest, said):
    words = [torch.zeros(shape, dtype=torch.int32) for shape in (to, given_)]
    with pytest.raises(ValueError, match=said):
        _native.core().life(*words, *rest)


def test_the_core_refuses_to_write_where_it_reads():
    words = torch.zeros(4, 2, dtype=torch.int32)
    with pytest.raises(ValueError, match="overlap"):
        _native.core().life(words, words, 8, 12, True, 1)


@pytest.mark.long
def test_kernels_for_the_gpu_have_the_bits_of_the_plain_step(run_apart: Callable[..., str]):
    found = run_apart("triton_twins.py", TRITON_INTERPRET="1")
    assert "16 cases, wrong: []" in found


@pytest.mark.long
def test_kernels_for_the_gpu_compile(run_apart: Callable[..., str], tmp_path: Path):
    assert "8 kernels" in run_apart("triton_compiles.py", TRITON_CACHE_DIR=str(tmp_path))
