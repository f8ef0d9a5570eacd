"""Schedules against their closed forms and torch's own."""

import math

import pytest
import torch
from hypothesis import given, strategies as st
from torch.optim import lr_scheduler

from hotgrid.errors import ArgumentError
from hotgrid.train import (
    WSD,
    Constant,
    CosineDecay,
    ExponentialDecay,
    LinearDecay,
    Noam,
    StepSchedule,
    Warmup,
)

counts = st.integers(1, 1000)
steps = st.integers(0, 3000)


@given(n=counts, step=steps, peak=st.floats(1e-6, 10))
def test_warm_up(n, step, peak):
    assert Warmup(n, peak)(step) == pytest.approx(peak * min(1, (step + 1) / n), rel=1e-14)


@given(n=counts, step=steps)
def test_linear(n, step):
    share = min(step, n) / n
    expected = 0.9 * (1 - share) + 0.1 * share
    assert LinearDecay(n, start=0.9, end=0.1)(step) == pytest.approx(expected, rel=1e-12)


@given(n=counts, step=steps)
def test_cosine(n, step):
    expected = 0.1 + 0.8 * math.cos(math.pi / 2 * min(step, n) / n) ** 2
    assert CosineDecay(n, start=0.9, end=0.1)(step) == pytest.approx(expected, rel=1e-12)


@given(every=counts, step=steps)
def test_exponential(every, step):
    expected = max(1e-3, math.exp(math.log(0.5) * step / every))
    found = ExponentialDecay(factor=0.5, every=every, floor=1e-3)(step)
    assert found == pytest.approx(expected, rel=1e-12)


def test_noam_is_the_published_formula():
    rate = Noam(width=512, warmup=4000)
    assert rate(3999) == pytest.approx(512**-0.5 * 4000**-0.5)
    assert rate(0) == pytest.approx(512**-0.5 * 4000**-1.5)
    assert rate(15999) == pytest.approx(rate(3999) / 2)


@pytest.mark.parametrize("shape", ["linear", "cosine", "sqrt"])
@given(warmup=st.integers(0, 50), stable=st.integers(0, 50), decay=st.integers(1, 50))
def test_wsd_is_its_three_parts(shape, warmup, stable, decay):
    wsd = WSD(warmup, stable, decay, peak=2.0, end=0.5, shape=shape)
    for step in range(warmup):
        assert wsd(step) == Warmup(warmup, 2.0)(step)
    for step in range(warmup, warmup + stable + 1):
        assert wsd(step) == 2.0
    falls = [wsd(warmup + stable + k) for k in range(decay + 3)]
    assert falls == sorted(falls, reverse=True)
    assert falls[decay:] == [0.5] * 3
    if shape == "sqrt" and decay % 4 == 0:
        assert wsd(warmup + stable + decay // 4) == pytest.approx(0.5 + 1.5 / 2)


def stepped(scheduler, **options) -> list[float]:
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.7)
    found = scheduler(optimizer, **options)
    values = []
    for _ in range(20):
        values.append(found.get_last_lr()[0])
        optimizer.step()
        found.step()
    return values


def test_torch_has_the_same_curves():
    """torch counts, and multiplies what it had; ours computes every step from nothing."""
    cosine = stepped(lr_scheduler.CosineAnnealingLR, T_max=20, eta_min=0.1)
    assert [CosineDecay(20, 0.7, 0.1)(k) for k in range(20)] == pytest.approx(cosine)
    linear = stepped(lr_scheduler.LinearLR, start_factor=1.0, end_factor=0.2, total_iters=15)
    assert [(0.7 * LinearDecay(15, 1.0, 0.2))(k) for k in range(20)] == pytest.approx(linear)
    falling = stepped(lr_scheduler.ExponentialLR, gamma=0.9)
    assert [ExponentialDecay(0.9, start=0.7)(k) for k in range(20)] == pytest.approx(falling)


def test_lengths_add_up():
    assert Warmup(3).then(LinearDecay(4)).length == 7
    assert (2.0 * Warmup(3).then(LinearDecay(4))).length == 7
    assert (Warmup(3) * CosineDecay(10)).length == 10
    assert Warmup(3).then(Constant()).length is None


def test_what_never_ends_says_so():
    with pytest.raises(ArgumentError, match=r"never ends.*after=1000"):
        Constant(1.0).then(Warmup(3))
    with pytest.raises(ArgumentError, match=r"never ends.*steps=1000"):
        Noam(64, 10).plot()


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_a_picture_is_written(tmp_path, suffix):
    path = tmp_path / f"rate{suffix}"
    Warmup(10).then(CosineDecay(30)).plot(path=path)
    begins = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}[suffix]
    assert path.read_bytes().startswith(begins)


def test_a_picture_of_another_kind_is_refused(tmp_path):
    with pytest.raises(ArgumentError, match=r"rate.exe.*\.png, \.svg, \.pdf"):
        Warmup(10).plot(path=tmp_path / "rate.exe")


def test_data_of_no_schedule_is_refused():
    with pytest.raises(ArgumentError, match="did you mean `Warmup`"):
        StepSchedule.from_json({"schedule": "Warmups", "steps": 3})
    with pytest.raises(ArgumentError, match="is not a schedule"):
        StepSchedule.from_json({"steps": 3})
    with pytest.raises(ArgumentError, match="there is no schedule"):
        StepSchedule.from_json({"schedule": ["Warmup"]})
    with pytest.raises(ArgumentError, match=r"Warmup.*steps"):
        StepSchedule.from_json({"schedule": "Warmup"})
    with pytest.raises(ArgumentError, match=r"`shape` of WSD is 'sqr'.*did you mean `sqrt`"):
        WSD(1, 1, 1, shape="sqr")
