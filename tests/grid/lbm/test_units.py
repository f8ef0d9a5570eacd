"""Units: round trips, and warnings outside of the valid range."""

import warnings

import pytest
import torch
from hypothesis import given, strategies as st

from hotgrid.errors import ArgumentError
from hotgrid.grid.lbm import Units
from hotgrid.grid.lbm._units import _KINDS

AIR = {"length": 0.1, "cells": 50, "velocity": 0.3, "viscosity": 1.5e-5, "density": 1.2}
numbers = st.floats(1e-3, 1e3)


@given(st.sampled_from(sorted(_KINDS)), numbers)
def test_a_round_trip(kind: str, value: float):
    units = Units(**AIR)
    assert units.to_world(units.to_lattice(value, kind), kind) == pytest.approx(value)


def test_the_given_numbers_are_what_they_should_be():
    units = Units(**AIR)
    assert units.to_lattice(0.1, "length") == pytest.approx(50)
    assert units.to_lattice(0.3, "velocity") == pytest.approx(0.1)
    assert units.to_lattice(1.2, "density") == pytest.approx(1)
    assert units.cell == pytest.approx(0.002)
    assert units.step == pytest.approx(0.002 * 0.1 / 0.3)


@given(numbers, numbers, numbers, numbers)
def test_the_reynolds_number_is_the_same_on_the_lattice(
    length: float, velocity: float, viscosity: float, cells: float
):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        units = Units(length, cells, velocity, viscosity)
    assert 0.1 * cells / units.lattice_viscosity == pytest.approx(units.reynolds)


def test_kinds_fit_each_other():
    units = Units(**AIR)
    pressure = units.to_world(1.0, "density") * units.to_world(1.0, "velocity") ** 2
    assert units.to_world(1.0, "pressure") == pytest.approx(pressure)
    force = pressure * units.cell**2
    assert units.to_world(1.0, "force") == pytest.approx(force)
    assert units.to_world(1.0, "force_per_depth") == pytest.approx(force / units.cell)
    assert units.to_world(1.0, "force_density") == pytest.approx(force / units.cell**3)
    assert units.to_world(torch.ones(2), "time").shape == (2,)


def test_it_warns_of_a_high_mach_number():
    with pytest.warns(
        UserWarning, match=r"Mach number is 0\.35: .* smaller `lattice_velocity`"
    ):
        Units(**AIR, lattice_velocity=0.2)


def test_it_warns_of_a_relaxation_time_that_is_too_short_or_too_long():
    with pytest.warns(
        UserWarning, match=r"relaxation time is 0\.5008; near 0\.5 .* more `cells`"
    ):
        Units(**{**AIR, "viscosity": 1.5e-6})
    with pytest.warns(UserWarning, match=r"relaxation time is 8\.0.*; above 2 .* inaccurate"):
        Units(**{**AIR, "viscosity": 1.5e-2})


def test_bad_numbers_and_kinds_are_refused():
    with pytest.raises(ArgumentError, match=r"`cells` must be above 0, got 0"):
        Units(**{**AIR, "cells": 0})
    with pytest.raises(
        ArgumentError, match=r"`kind` 'velocty' is unknown; use .*; did you mean `velocity`\?$"
    ):
        Units(**AIR).to_world(1, "velocty")
