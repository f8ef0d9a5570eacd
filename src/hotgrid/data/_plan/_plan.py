"""Plans: a source, steps that make columns, and which columns come out."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from hotgrid.errors import ArgumentError, DamagedError, near
from hotgrid.files import read_regular, whole_file

from ._documents import build_document, document_fields
from ._operator import Operator, settings_checked
from ._order import Order
from ._source import Source, fields_checked
from ._step import Step
from ._types import ColumnType

# A plan is text that a person may write.
_LARGEST = 1 << 24
_FORMAT = "hotgrid plan 1"
_DEEPEST = 100


@dataclass(frozen=True)
class Plan:
    r"""How samples become columns, as a document: it can be printed, saved and compared.

    The columns of the source are given; every other column is made by a step from columns.
    Steps may be in any order: what is needed for `yields` is run, after what it needs.

    Args:
        source: Where the samples are.
        steps: What is made of them. `then` adds one and checks its types.
        yields: The columns that come out; by default all that no step reads.
        order: In which order, and with which seed.
        corrupt: What a damaged sample becomes: `substitute` takes another sample of its
            batch in its place, `drop` leaves it out, `raise` ends the run.
        most_corrupt: How many damaged samples end the run.

    Raises:
        ArgumentError: A column is made twice, missing, or made from itself.

    Example:
        >>> _ = Path("a.jsonl").write_text('{"text": "hello"}\n{"text": "you"}\n')
        >>> plan = Plan(JsonLines(("a.jsonl",), {"text": "text"})).then(
        ...     "length", "text", "letters"
        ... )
        >>> print(plan.graph())
        json_lines a.jsonl
          text     text
        letters  int64  = length(text)
        yields letters
        >>> Plan.from_json(plan.to_json()) == plan
        True
    """

    source: Source
    steps: tuple[Step, ...] = ()
    yields: tuple[str, ...] = ()
    order: Order = field(default_factory=Order)
    corrupt: Literal["substitute", "drop", "raise"] = "substitute"
    most_corrupt: int = 100

    def __post_init__(self) -> None:
        fields_checked(self.source)
        if isinstance(self.yields, str):
            raise ArgumentError(
                f"`yields` is a text, {self.yields!r}; expected a tuple of names"
            )
        object.__setattr__(self, "yields", tuple(self.yields))
        object.__setattr__(self, "steps", tuple(self.steps))
        if self.corrupt not in ("substitute", "drop", "raise"):
            raise ArgumentError(
                f"`corrupt` is {self.corrupt!r}; choose 'substitute', 'drop' or 'raise'"
            )
        makers: dict[str, Step] = {}
        for step in self.steps:
            for name in step.outputs.values():
                if name in makers:
                    raise ArgumentError(
                        f"column `{name}` is made twice: by `{makers[name].operator}` and by "
                        f"`{step.operator}`"
                    )
                makers[name] = step
        # Raises if a column is made from itself.
        ordered(self.steps)

    def then(
        self,
        operator: str | Operator,
        inputs: str | Mapping[str, str],
        outputs: str | Mapping[str, str],
        **config: Any,
    ) -> "Plan":
        """Return the plan with one more step, whose types are checked.

        Args:
            operator: The operator, or its name.
            inputs: Which column each parameter reads; a name alone if there is one parameter.
            outputs: Which column each output becomes; a name alone if there is one output.
            config: The settings of an operator that is given by name.

        Raises:
            ArgumentError: A column is missing or of another type than the operator takes; the
                text names the column, the operator and the source.
        """
        if isinstance(operator, Operator):
            if config:
                raise ArgumentError(f"give {', '.join(config)} to {type(operator).__name__}()")
            config = settings_checked(operator).config
            operator = operator.name
        known = self.types()
        probe = Step(operator, {}, {}, config).build()
        if isinstance(inputs, str):
            inputs = {next(iter(probe.inputs), "input"): inputs}
        if isinstance(outputs, str):
            outputs = {_only_output(probe, inputs, known): outputs}
        made = replace(self, steps=(*self.steps, Step(operator, inputs, outputs, config)))
        made.types()
        return made

    def yielding(self, *columns: str) -> "Plan":
        """Return the plan with other columns that come out."""
        made = replace(self, yields=columns)
        made.yielded()
        return made

    def types(self) -> dict[str, ColumnType]:
        """Return every column and its type; the source provides its own.

        Raises:
            ArgumentError: Types do not fit; the text names column, operator and source.
        """
        known = dict(self.source.columns())
        where = str(self.source)
        for step in ordered(self.steps):
            for name, found in step.types(known, where).items():
                if name in known:
                    raise ArgumentError(
                        f"operator `{step.operator}` makes column `{name}`, which the source "
                        f"{where} has already; choose another name"
                    )
                known[name] = found
        return known

    def yielded(self) -> dict[str, ColumnType]:
        """Return the columns that come out, and their types."""
        known = self.types()
        if not self.yields:
            read = {name for step in self.steps for name in step.inputs.values()}
            return {name: each for name, each in known.items() if name not in read}
        for name in self.yields:
            if name not in known:
                hint = near(name, known) or f"; there are {', '.join(known)}"
                raise ArgumentError(
                    f"`yields` names column `{name}`, which nothing makes{hint}"
                )
        return {name: known[name] for name in self.yields}

    def needed(self, columns: Sequence[str]) -> tuple[Step, ...]:
        """Return the steps that make these columns, in an order that satisfies their inputs."""
        wanted, found = {*columns}, []
        for step in reversed(ordered(self.steps)):
            if wanted & {*step.outputs.values()}:
                wanted |= {*step.inputs.values()}
                found.append(step)
        return tuple(reversed(found))

    def graph(self) -> str:
        """Return the plan as text: source, columns with their types, steps, outputs."""
        known = self.types()
        width = max(map(len, known), default=0)
        kinds = max((len(str(each)) for each in known.values()), default=0)
        lines = [str(self.source)]
        lines += [f"  {n:{width}}  {each}" for n, each in self.source.columns().items()]
        for step in ordered(self.steps):
            right = str(step).partition(" = ")[2]
            for name in step.outputs.values():
                lines.append(f"{name:{width}}  {known[name]!s:{kinds}}  = {right}")
        return "\n".join([*lines, f"yields {', '.join(self.yielded())}"])

    def to_json(self) -> str:
        """Return the plan as JSON."""
        return json.dumps({"format": _FORMAT, **document_fields(self)}, indent=2)

    @classmethod
    def from_json(cls, text: str | bytes) -> "Plan":
        """Read a plan from JSON. Types are checked once it is used.

        Raises:
            ArgumentError: It is not the JSON of a plan.
        """
        try:
            found = json.loads(text)
        except (ValueError, RecursionError) as problem:
            raise ArgumentError(f"the plan is not JSON: {problem}") from None
        if not isinstance(found, dict) or found.pop("format", None) != _FORMAT:
            raise ArgumentError(f'a plan is a JSON object with "format": "{_FORMAT}"')
        steps = found.get("steps", [])
        if not isinstance(steps, list):
            raise ArgumentError("`steps` of the plan is not a list")
        found["steps"] = [
            build_document(Step, each, f"step {n}") for n, each in enumerate(steps, 1)
        ]
        # Not by Python's limit of recursion, which other packages change.
        if _nested(found) > _DEEPEST:
            raise ArgumentError("the sources of the plan are nested too deeply")
        return build_document(cls, found, "the plan")

    def write(self, path: Path | str) -> None:
        """Write the plan to a JSON file."""
        with whole_file(Path(path)) as aside:
            aside.write_text(self.to_json() + "\n", encoding="utf-8")

    @classmethod
    def read(cls, path: Path | str) -> "Plan":
        """Read the JSON file of a plan. Paths in it are relative to the working folder.

        Raises:
            ArgumentError: It cannot be read, or is not a plan; the text names the file.
        """
        try:
            return cls.from_json(read_regular(Path(path), _LARGEST))
        except (DamagedError, ArgumentError) as problem:
            raise ArgumentError(f"`{path}`: {problem}") from None

    def fingerprint(self) -> str:
        """Return a digest of the plan: plans with the same one make the same samples."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()[:16]


def ordered(steps: Sequence[Step]) -> tuple[Step, ...]:
    """Steps, each after those that make its inputs; otherwise in the order given."""
    waiting, done = list(steps), []
    made_later = {name for step in waiting for name in step.outputs.values()}
    while waiting:
        ready = next(
            (step for step in waiting if not made_later & {*step.inputs.values()}), None
        )
        if ready is None:
            columns = ", ".join(f"`{n}`" for step in waiting for n in step.outputs.values())
            raise ArgumentError(f"columns {columns} are made from each other in a circle")
        waiting.remove(ready)
        done.append(ready)
        made_later -= {*ready.outputs.values()}
    return tuple(done)


def _only_output(
    made: Operator, inputs: Mapping[str, str], known: Mapping[str, ColumnType]
) -> str:
    """The name of the first output; if the inputs are wrong, checking the types says how."""
    given = {name: known[column] for name, column in inputs.items() if column in known}
    fits = {*given} == {*made.inputs} and all(
        ColumnType.of(made.inputs[name]).accepts(each) for name, each in given.items()
    )
    try:
        return next(iter(made.outputs(given))) if fits else "output"
    except ArgumentError:
        return "output"


def _nested(value: Any) -> int:
    """How deep objects and lists are inside each other."""
    depth, level = 0, [value]
    while level := [each for each in level if isinstance(each, dict | list)]:
        depth += 1
        level = [
            inner
            for each in level
            for inner in (each.values() if isinstance(each, dict) else each)
        ]
    return depth
