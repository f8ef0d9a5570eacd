"""Running the steps of a plan on one sample."""

import time
import zlib
from collections.abc import Mapping, MutableMapping, Sequence
from typing import Any, NamedTuple

from hotgrid.data._plan import Operator, Plan, SampleDraws, Samples
from hotgrid.errors import ArgumentError, DamagedError, HotgridError

from ._corrupt import CorruptError, CorruptSample


class _Call(NamedTuple):
    """A step that is ready to run."""

    name: str
    operator: Operator
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    # Steps draw unrelated numbers, whatever other steps there are.
    key: int
    fills: bool


class Runner:
    """The steps that make some columns of a plan.

    Args:
        plan: The plan.
        columns: What to make; by default what the plan yields.
        samples: The source, if it is open already.

    Raises:
        ArgumentError: Types do not fit.
    """

    def __init__(
        self,
        plan: Plan,
        columns: Sequence[str] | None = None,
        samples: Samples | None = None,
    ) -> None:
        known = plan.types()
        self.columns = tuple(plan.yielded() if columns is None else columns)
        self.types = {name: known[name] for name in self.columns}
        self.seed = plan.order.seed
        base = plan.source.columns()
        steps = plan.needed(self.columns)
        read = {name for step in steps for name in step.inputs.values()} | {*self.columns}
        self.base = tuple(name for name in base if name in read)
        self.calls = []
        for step in steps:
            made = step.build()
            given = {p: known[column] for p, column in step.inputs.items()}
            outputs = tuple(step.outputs[name] for name in made.outputs(given))
            self.calls.append(
                _Call(
                    step.operator,
                    made,
                    tuple(step.inputs[name] for name in made.inputs),
                    outputs,
                    zlib.crc32(outputs[0].encode()),
                    made.fills and len(outputs) == 1,
                )
            )
        self.samples = plan.source.open() if samples is None else samples

    def run(
        self,
        index: int,
        epoch: int = 0,
        repeat: int = 0,
        outs: Mapping[str, Any] | None = None,
        times: MutableMapping[str, float] | None = None,
    ) -> dict[str, Any]:
        """Make the columns of a sample.

        Args:
            index: Which sample.
            epoch: Random numbers depend on it.
            repeat: How often the sample was in this epoch before.
            outs: Arrays to write columns to, where the operator can.
            times: Where to add the seconds of every step.

        Raises:
            CorruptError: The sample is damaged.
        """
        outs = outs or {}
        begin = time.perf_counter() if times is not None else 0.0
        try:
            values = self.samples.read(index, self.base)
        except (DamagedError, OSError, ValueError) as problem:
            raise self._corrupt(problem, index, "", ", ".join(self.base)) from problem
        if times is not None:
            begin = _add(times, "read", begin)
        for call in self.calls:
            more: dict[str, Any] = {}
            if call.operator.random:
                more["draws"] = SampleDraws(self.seed, epoch, index, repeat, call.key)
            if call.fills:
                more["out"] = outs.get(call.outputs[0])
            try:
                made = call.operator.run(*[values[name] for name in call.inputs], **more)
            except (DamagedError, OSError, ValueError) as problem:
                column = ", ".join(call.outputs)
                raise self._corrupt(problem, index, call.name, column) from problem
            except Exception as problem:
                place = self.samples.place(index)
                problem.add_note(f"in operator `{call.name}`, sample {index}, `{place}`")
                raise
            if len(call.outputs) == 1:
                values[call.outputs[0]] = made
            else:
                values.update(zip(call.outputs, made, strict=True))
            if times is not None:
                begin = _add(times, call.name, begin)
        return {name: values[name] for name in self.columns}

    def _corrupt(self, problem: Exception, index: int, operator: str, column: str) -> Exception:
        """The error of a damaged sample; other errors of hotgrid are returned unchanged."""
        if isinstance(problem, HotgridError) and not isinstance(problem, DamagedError):
            return problem
        reason = str(problem) or type(problem).__name__
        place = self.samples.place(index)
        return CorruptError(CorruptSample(index, place, operator, column, reason))

    def require_shape(self, name: str, value: Any) -> None:
        """Raise unless a value has the shape that its operator promised.

        Raises:
            ArgumentError: The column has another type.
        """
        if getattr(value, "shape", ()) != self.types[name].shape:
            maker = next((c.name for c in self.calls if name in c.outputs), "the source")
            raise ArgumentError(
                f"column `{name}` is {self.types[name]}, but `{maker}` made "
                f"{list(getattr(value, 'shape', ()))}"
            )


def _add(times: MutableMapping[str, float], name: str, begin: float) -> float:
    now = time.perf_counter()
    times[name] = times.get(name, 0.0) + now - begin
    return now
