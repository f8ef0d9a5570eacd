"""A step of a plan: an operator, and the columns it reads and makes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hotgrid.errors import ArgumentError, near

from ._documents import build_document
from ._operator import OPERATORS, Operator
from ._types import ColumnType


@dataclass(frozen=True)
class Step:
    """An operator with its settings, and the columns of its inputs and outputs.

    Args:
        operator: The name of the operator.
        inputs: Which column each parameter reads.
        outputs: Which column each output becomes.
        config: The settings of the operator, as JSON.

    Raises:
        ArgumentError: A name cannot be one of a column.

    Example:
        >>> print(Step("resize", {"image": "photo"}, {"image": "small"}, {"height": 32}))
        small = resize(photo, height=32)
    """

    operator: str
    inputs: Mapping[str, str] = field(default_factory=dict)
    outputs: Mapping[str, str] = field(default_factory=dict)
    config: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in (*self.inputs.values(), *self.outputs.values()):
            if not isinstance(name, str) or not name.isidentifier():
                raise ArgumentError(
                    f"operator `{self.operator}`: {name!r} cannot name a column; use letters, "
                    "digits and _, no digit first"
                )
        if len({*self.outputs.values()}) < len(self.outputs):
            raise ArgumentError(
                f"operator `{self.operator}` makes one column twice: {[*self.outputs.values()]}"
            )

    def __str__(self) -> str:
        settings = [f"{name}={each!r}" for name, each in self.config.items()]
        made = ", ".join(self.outputs.values())
        return f"{made} = {self.operator}({', '.join([*self.inputs.values(), *settings])})"

    def build(self) -> Operator:
        """Return the operator with its settings.

        Raises:
            ArgumentError: There is no such operator, or it has no such setting.
        """
        made = ", ".join(f"`{name}`" for name in self.outputs.values())
        cls = OPERATORS.get(self.operator, f"{made}: ")
        return build_document(
            cls, self.config, f"operator `{self.operator}`, which makes {made}"
        )

    def types(self, known: Mapping[str, ColumnType], source: str) -> dict[str, ColumnType]:
        """Return the types of the columns that it makes, given those of the others.

        Raises:
            ArgumentError: An input is missing or of another type, or an output does not
                exist. The text names the column, the operator and the source.
        """
        made = self.build()
        where = f"operator `{self.operator}`"
        _same_names(where, "input", self.inputs, [*made.inputs])
        given = {}
        for parameter, expected in made.inputs.items():
            column = self.inputs[parameter]
            if column not in known:
                hint = near(column, known) or f"; there are {', '.join(known) or 'none'}"
                raise ArgumentError(
                    f"{where} reads column `{column}`, which neither the source {source} nor a "
                    f"step makes{hint}"
                )
            if not ColumnType.of(expected).accepts(known[column]):
                raise ArgumentError(
                    f"{where} takes {expected} as `{parameter}`, but column `{column}` is "
                    f"{known[column]} (source {source})"
                )
            given[parameter] = known[column]
        try:
            results = made.outputs(given)
        except ArgumentError as problem:
            columns = ", ".join(f"`{name}`" for name in self.inputs.values())
            raise ArgumentError(
                f"{where} on column {columns}: {problem} (source {source})"
            ) from None
        _same_names(where, "output", self.outputs, [*results])
        return {self.outputs[name]: results[name] for name in results}


def _same_names(where: str, what: str, given: Mapping[str, str], expected: list[str]) -> None:
    for name in given:
        if name not in expected:
            hint = near(name, expected) or f"; it has {', '.join(expected) or 'none'}"
            raise ArgumentError(f"{where} has no {what} `{name}`{hint}")
    missing = [name for name in expected if name not in given]
    if missing:
        raise ArgumentError(
            f"{where} needs a column for its {what} {', '.join(f'`{m}`' for m in missing)}"
        )
