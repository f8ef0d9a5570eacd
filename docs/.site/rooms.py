"""Teach the reference builder two habits of this house."""

from typing import Any

import griffe


class Rooms(griffe.Extension):
    """Public is what a room's `__init__` names, and `Example:` holds code."""

    def on_alias(self, *, alias: griffe.Alias, **_: Any) -> None:
        """Show names that a room takes from its private files."""
        if alias.parent is not None and alias.parent.is_init_module:
            alias.public = not alias.name.startswith("_")

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Call the section by the plural that the docstring parser knows."""
        if obj.docstring is not None:
            obj.docstring.value = obj.docstring.value.replace("Example:\n", "Examples:\n")
