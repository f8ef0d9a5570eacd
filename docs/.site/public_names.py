"""Teach the reference builder two conventions of hotgrid."""

from typing import Any

import griffe


class PublicNames(griffe.Extension):
    """Names that an `__init__` exports are public, and `Example:` contains code."""

    def on_alias(self, *, alias: griffe.Alias, **_: Any) -> None:
        """Show names that a package exports from its private modules."""
        if alias.parent is not None and alias.parent.is_init_module:
            alias.public = not alias.name.startswith("_")

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Call the section by the plural that the docstring parser knows."""
        if obj.docstring is not None:
            obj.docstring.value = obj.docstring.value.replace("Example:\n", "Examples:\n")
