"""`query`: path expressions built by methods instead of text."""

from dataclasses import dataclass
from decimal import Decimal

from hotgrid.errors import ArgumentError, near

from ._evaluate import nodes_of
from ._node import ATTRIBUTES, PARAMETER


@dataclass(frozen=True)
class Query:
    """A path expression; every method returns a longer one, checked at once.

    `str()` of it is the expression. Two queries are joined with `|`.

    Attributes:
        expression: The text.
    """

    expression: str

    def __post_init__(self) -> None:
        nodes_of(self.expression)

    def children(self, type: str = "*") -> "Query":
        """The children, or those of one type: `/Linear`."""
        return Query(f"{self._joined}/{type}")

    def named(self, name: str, type: str = "*") -> "Query":
        """The children in a field of this name: `/*[@name='h']`."""
        return self.children(type).where(name=name)

    def at(self, index: int) -> "Query":
        """The child at an index of a list, from 0 as in Python: `/*[@index=3]`."""
        return self.children().where(index=index)

    def descendants(self, type: str = "*") -> "Query":
        """All below, or those of one type: `//Linear`."""
        return Query(f"{self._joined}//{type}")

    def parameters(self) -> "Query":
        """All parameters at or below: `/descendant-or-self::Param`."""
        return Query(f"{self._joined}/descendant-or-self::{PARAMETER}")

    def where(self, condition: str = "", /, **attributes: str | float) -> "Query":
        """Only those that meet a condition, such as `"@index < 4"`, or have these attributes.

        Raises:
            ArgumentError: The condition has an error, or there is no such attribute.
        """
        said = f"[{condition}]" if condition else ""
        for name, value in attributes.items():
            if name not in ATTRIBUTES:
                raise ArgumentError(
                    f"there is no attribute `{name}`{near(name, ATTRIBUTES)} "
                    f"(there are {', '.join(ATTRIBUTES)})"
                )
            said += f"[@{name}={_literal(value)}]"
        return Query(f"{self._joined}{said}")

    def __or__(self, other: "Query") -> "Query":
        return Query(f"{self.expression} | {other}")

    def __str__(self) -> str:
        return self.expression

    @property
    def _joined(self) -> str:
        return f"({self.expression})" if "|" in self.expression else self.expression


def query(type: str = "*") -> Query:
    """Begin a query at the root of a module; `select` takes it in place of a text.

    Args:
        type: The type that the root must have.

    Example:
        >>> str(query("GPT").named("h").descendants("Linear").named("weight").where(rank=2))
        "GPT/*[@name='h']//Linear/*[@name='weight'][@rank=2]"

    Raises:
        ArgumentError: It is not the name of a type, or `*`.
    """
    return Query(type)


def _literal(value: str | float) -> str:
    if isinstance(value, bool):
        return f"'{str(value).lower()}'"
    if not isinstance(value, str):
        # Expressions know no exponents.
        return format(Decimal(repr(value)), "f")
    if "'" not in value:
        return f"'{value}'"
    if '"' in value:
        raise ArgumentError(f"`{value}` has both kinds of quotes, which no expression allows")
    return f'"{value}"'
