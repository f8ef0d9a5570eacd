"""The guide names what is public."""

from pathlib import Path

import hotgrid.nn

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "nn.md"
# They are what `tree` and `query` return.
RETURNED = {"Node", "Tree", "Query"}


def test_the_guide_names_what_is_public():
    text = PAGE.read_text(encoding="utf-8")
    public = {name for name in vars(hotgrid.nn) if not name.startswith("_")} - RETURNED
    assert {name for name in public if f"`{name}" not in text} == set()
