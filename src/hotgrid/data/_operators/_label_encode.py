"""Names of classes to numbers."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from hotgrid.data._plan import ColumnType, Operator, operator
from hotgrid.errors import ArgumentError, DamagedError, near


@operator("label_encode")
@dataclass(frozen=True)
class LabelEncode(Operator):
    """Give every class its number in a list. Another name is a damaged sample.

    Args:
        classes: The names, in order.
        other: The number of every other name; None refuses them.

    Raises:
        ArgumentError: A name occurs twice.
    """

    inputs: ClassVar = {"name": "text"}
    classes: tuple[str, ...]
    other: int | None = None

    def __post_init__(self) -> None:
        if len({*self.classes}) < len(self.classes) or not self.classes:
            raise ArgumentError(f"`classes` {self.classes} are not different names")
        object.__setattr__(self, "_numbers", {n: i for i, n in enumerate(self.classes)})

    def outputs(self, types: Mapping[str, ColumnType]) -> dict[str, ColumnType]:
        """Return the type of the number."""
        return {"label": ColumnType("int64")}

    def run(self, name: str) -> int:
        """Look up one name."""
        numbers: dict[str, int] = self._numbers  # pyright: ignore[reportAttributeAccessIssue]
        found = numbers.get(name, self.other)
        if found is None:
            raise DamagedError(f"`{name}` is not one of the classes{near(name, self.classes)}")
        return found
