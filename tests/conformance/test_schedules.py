"""What every schedule must do. One enters by being exported from `hotgrid.train`."""

import dataclasses
import inspect
import json
import math

import pytest
from hypothesis import given, strategies as st

import hotgrid.train
from hotgrid.errors import ArgumentError
from hotgrid.train import (
    WSD,
    Constant,
    CosineDecay,
    ExponentialDecay,
    LinearDecay,
    Noam,
    Product,
    StepSchedule,
    Then,
    Warmup,
)

EXPORTED = {
    name: value
    for name, value in vars(hotgrid.train).items()
    if inspect.isclass(value)
    and issubclass(value, StepSchedule)
    and not inspect.isabstract(value)
}
# A required number is this; schedules that need others, or have other ways, are made by hand.
REQUIRED = {"int": 10, "float": 0.5}
MADE_BY_HAND = {
    "CosineDecay from below": CosineDecay(steps=37, start=0.1, end=0.9),
    "ExponentialDecay": ExponentialDecay(factor=0.97, every=3, start=0.7, floor=0.1),
    "Product": Product(Warmup(steps=5), CosineDecay(steps=20)),
    "Then": Then(Warmup(steps=5), LinearDecay(steps=7), after=5),
    "WSD sqrt": WSD(warmup=3, stable=4, decay=5, peak=0.3, end=0.01, shape="sqrt"),
    "WSD cosine": WSD(warmup=0, stable=0, decay=5, shape="cosine"),
    "Warmup to a third": Warmup(steps=300, peak=1 / 3),
    "deep": 0.02 * Warmup(steps=5).then(Constant(0.5), after=9).then(Noam(64, 10), after=20),
}


def made(cls: type[StepSchedule]) -> StepSchedule:
    needed = [f for f in dataclasses.fields(cls) if f.default is dataclasses.MISSING]
    kinds = {field.name: getattr(field.type, "__name__", field.type) for field in needed}
    return cls(**{name: REQUIRED[kind] for name, kind in kinds.items()})


MADE = {
    **{name: made(cls) for name, cls in EXPORTED.items() if name not in MADE_BY_HAND},
    **MADE_BY_HAND,
}
every_schedule = pytest.mark.parametrize("schedule", MADE.values(), ids=MADE)
steps = st.integers(0, 10**7)


def test_schedules_were_found():
    assert (
        {"Constant", "CosineDecay", "Noam", "WSD", "Warmup"} <= EXPORTED.keys() <= MADE.keys()
    )


@every_schedule
def test_it_survives_json_to_the_bit(schedule):
    back = StepSchedule.from_json(json.loads(json.dumps(schedule.to_json())))
    assert back == schedule and hash(back) == hash(schedule)
    assert [back(step) for step in range(500)] == [schedule(step) for step in range(500)]
    assert eval(repr(schedule), dict(EXPORTED)) == schedule


@every_schedule
@given(step=steps)
def test_it_is_a_finite_function_of_the_step(schedule, step):
    value = schedule(step)
    assert isinstance(value, float) and math.isfinite(value)
    schedule(step // 2)
    assert schedule(step) == value


@every_schedule
def test_it_is_frozen_and_refuses_steps_that_are_none(schedule):
    field = dataclasses.fields(schedule)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(schedule, field, 1)
    for step in (-1, 0.5, "3", None):
        with pytest.raises(ArgumentError, match="`step` is"):
            schedule(step)


@every_schedule
@given(further=steps)
def test_after_its_length_nothing_changes(schedule, further):
    if schedule.length is not None:
        assert schedule(schedule.length + further) == schedule(schedule.length)


@every_schedule
@given(number=st.floats(1e-6, 1e6), step=steps)
def test_it_multiplies_and_is_followed(schedule, number, step):
    assert (number * schedule)(step) == (schedule * number)(step) == number * schedule(step)
    followed = schedule.then(Constant(7.0), after=100)
    assert followed(step) == (schedule(step) if step < 100 else 7.0)
    late = Constant(7.0).then(schedule, after=100)
    assert late(step) == (7.0 if step < 100 else schedule(step - 100))


@every_schedule
@pytest.mark.parametrize("width", [20, 72])
def test_its_drawing_has_the_width_and_the_largest_value(schedule, width):
    text = schedule.plot(steps=60, width=width)
    lines = text.splitlines()
    assert len(lines) == 11
    assert max(map(len, lines)) <= width
    top = float(lines[0].split("┤")[0])
    largest = max(schedule(step) for step in range(61))
    assert top <= largest * 1.001 and (width < 60 or top >= largest * 0.9)
    assert "█" in text and "60" in lines[-1]


@every_schedule
def test_wrong_fields_are_named(schedule):
    data = schedule.to_json()
    name = dataclasses.fields(schedule)[0].name
    for wrong in (math.nan, "many", -1j, None):
        with pytest.raises(ArgumentError, match=type(schedule).__name__):
            StepSchedule.from_json({**data, name: wrong})
    with pytest.raises(ArgumentError, match=f"no field `{name}s`; did you mean `{name}`"):
        StepSchedule.from_json({**data, f"{name}s": 1})
