"""Polar zones: every direction lands in its zone, equal areas stay equal."""

import math

import pytest
import torch
from hypothesis import given, strategies as st

from hotgrid.blt import ZONES, into_zone, zone_of, zone_rule
from hotgrid.errors import ArgumentError, ContractError

part = st.floats(-1, 1)
directions = st.one_of(
    st.tuples(part, part, part).filter(lambda v: math.hypot(*v) > 1e-6),
    st.sampled_from([(0, 0, 1), (0, 0, -1), (0, 1, 0), (1e-9, 0, 1), (0, -1e-9, -1)]),
    # Their squares are subnormal, or zero.
    st.sampled_from([(0, 1.5e-160, -1), (5e-324, 5e-324, 1), (1e-200, 1e-200, 1)]),
)
each_zone = pytest.mark.parametrize("zone", sorted(ZONES))


def unit(values: tuple[float, float, float]) -> torch.Tensor:
    vector = torch.tensor([values], dtype=torch.float64)
    return vector / vector.norm()


def theta_of(units: torch.Tensor) -> torch.Tensor:
    return torch.atan2(units[:, :2].norm(dim=1), units[:, 2])


@each_zone
@given(values=directions)
def test_every_direction_lands_in_its_zone(zone: str, values: tuple[float, float, float]):
    start = unit(values)
    found = into_zone(start, zone)
    assert zone_of(float(theta_of(found))) == zone
    assert float(found.norm()) == pytest.approx(1, abs=1e-12)
    # Longitudes stay, where there is one.
    if math.hypot(*values[:2]) > 1e-3:
        before, after = (math.atan2(float(x[0, 1]), float(x[0, 0])) for x in (start, found))
        assert math.cos(before - after) == pytest.approx(1, abs=1e-9)


@each_zone
def test_equal_areas_stay_equal(zone: str):
    heights = torch.linspace(-1, 1, 101, dtype=torch.float64)
    wide = (1 - heights.square()).clamp(min=0).sqrt()
    found = into_zone(torch.stack([wide, torch.zeros_like(wide), heights], 1), zone)[:, 2]
    low, high = (math.cos(math.radians(each)) for each in reversed(ZONES[zone]))
    # The area of a belt is in proportion to its height.
    torch.testing.assert_close(
        found.diff(), torch.full((100,), (high - low) / 100).double(), rtol=1e-5, atol=0
    )


@given(st.floats(0, 180))
def test_zones_by_angle(degrees: float):
    wanted = "instruction" if degrees < 15 else "qa" if degrees > 165 else "content"
    if min(abs(degrees - 15), abs(degrees - 165)) > 1e-9:
        assert zone_of(math.radians(degrees)) == wanted


def test_borders_belong_to_the_content():
    assert zone_of(math.radians(15)) == zone_of(math.radians(165)) == "content"
    assert (zone_of(0.0), zone_of(math.pi)) == ("instruction", "qa")


def test_rules_by_name_and_label():
    rule = zone_rule(["qa=faq/*", "instruction=prompt", "qa=*.qa"])
    assert rule("faq/one.md", "text") == "qa"
    assert rule("rows.jsonl", "prompt") == "instruction"
    assert rule("faq/two.md", "prompt") == "qa"  # the first rule decides
    assert rule("a.qa", "text") == "qa"
    assert rule("a.md", "text") == "content"
    # Views of a column have its name before their own.
    assert rule("rows.jsonl", "prompt/text") == "instruction"
    assert rule("rows.jsonl", "prompt/0/image") == "instruction"
    assert rule("rows.jsonl", "prompts/text") == "content"
    assert zone_rule([])("a", "b") == "content"
    assert zone_rule(["instruction"])("a", "b") == "instruction"


def test_what_is_wrong_is_said():
    with pytest.raises(ArgumentError, match=r"no zone `contents`.*`content`"):
        zone_rule(["contents"])
    with pytest.raises(ArgumentError, match="no pattern"):
        zone_rule(["qa="])
    with pytest.raises(ArgumentError, match="0 to pi"):
        zone_of(4.0)
    with pytest.raises(ArgumentError, match="no zone"):
        into_zone(torch.zeros(1, 3), "pole")
    with pytest.raises(ContractError):
        into_zone(torch.zeros(3), "qa")
