"""Operators and sources by name: those of hotgrid, registered ones, and of other packages."""

from importlib.metadata import entry_points
from typing import Any, Generic, TypeVar

from hotgrid.errors import ArgumentError, near

Kind = TypeVar("Kind")


class Registry(Generic[Kind]):
    """Classes by name; those of other packages are loaded when an unknown name is asked for.

    Args:
        what: What they are called in messages.
        group: The group of entry points in which other packages name theirs.

    Example:
        >>> shapes = Registry("a shape", "my_package.shapes")
        >>> shapes.add("circle", type("Circle", (), {}))
        >>> shapes.names()
        ['circle']
    """

    def __init__(self, what: str, group: str) -> None:
        self.what, self.group = what, group
        self._classes: dict[str, type[Kind]] = {}
        self._loaded = False

    def add(self, name: str, cls: type[Kind]) -> None:
        """Register a class. A name can be taken again only by the same class, reloaded."""
        if not name.isidentifier():
            raise ArgumentError(
                f"`{name}` cannot name {self.what}: use letters, digits and _, no digit first"
            )
        old = self._classes.get(name)
        if old is not None and _place(old) != _place(cls):
            raise ArgumentError(
                f"`{name}` is {self.what} already, of {_place(old)}; choose another name"
            )
        self._classes[name] = cls

    def get(self, name: str, where: str = "") -> type[Kind]:
        """The class of a name.

        Raises:
            ArgumentError: Nothing has that name.
        """
        if name not in self._classes:
            self.load()
        if name not in self._classes:
            hint = near(name, self._classes) or f"; there are {', '.join(self.names())}"
            raise ArgumentError(f"{where}`{name}` is not {self.what}{hint}")
        return self._classes[name]

    def names(self) -> list[str]:
        """Every name, sorted, including those of other packages."""
        self.load()
        return sorted(self._classes)

    def load(self) -> None:
        """Load what other packages have registered as entry points."""
        if self._loaded:
            return
        self._loaded = True
        for point in sorted(entry_points(group=self.group), key=lambda each: each.name):
            try:
                found: Any = point.load()
            except Exception as problem:
                raise ArgumentError(
                    f"the entry point `{point.name} = {point.value}` of {self.group} cannot "
                    f"be loaded: {problem}"
                ) from problem
            # Importing it may have run the decorator already.
            if isinstance(found, type) and found not in self._classes.values():
                self.add(point.name, found)


def _place(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"
