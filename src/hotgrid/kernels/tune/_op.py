"""`Op` and `Candidate`: all that the tuner needs to know of one operation, as data."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.util import find_spec
from itertools import groupby
from typing import Any

from ._call import Call, Work

Priority = int | Callable[[Call], int]


def always(call: Call) -> bool:
    """Apply everywhere; the `applies` of a candidate that has no conditions."""
    return True


@dataclass(frozen=True)
class Group:
    """A family of candidates that are worth trying at the same time.

    Attributes:
        name: For example `native` or `triton`.
        priority: Groups with a higher one are tried first; a negative one means never.
            A number, or a function of the call.

    Example:
        >>> Group("triton", lambda call: 2 if call.device.type == "cuda" else -1).name
        'triton'
    """

    name: str
    priority: Priority = 0


TENSOR = Group("tensor", 0)
"""Candidates made of torch's own operations: they run everywhere and are tried last."""
NATIVE = Group("native", lambda call: 1 if call.device.type == "cpu" else -1)
"""Candidates of the C++ core."""


@cache
def _has_triton() -> bool:
    return find_spec("triton") is not None


TRITON = Group("triton", lambda call: 1 if call.device.type == "cuda" and _has_triton() else -1)
"""Candidates written in Triton; where that is not installed they are never tried."""


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """One way to compute an op.

    Attributes:
        name: Unique within the op; `kernels.choose` names it.
        function: Takes the checked arguments of the op, and
            returns what the reference returns. It must not change its arguments.
        applies: Whether the function can compute a call. It sees exact sizes.
        group: The family it belongs to.
        priority: Within the group: higher is tried first, negative never.
        checked: The same function with every access to memory guarded; it raises
            `KernelError` for a bad one. None for functions made of torch's operations,
            which check for themselves.
        ready: Takes the arguments of a call that the function has computed, and returns a
            function for calls with tensors of the same types, shapes and strides, with all
            that follows from these worked out; or None. Later calls use it, so trials time it.
        always_wins: Whether it wins wherever it applies, without a trial, unless the settings
            name another.

    Example:
        >>> double = Candidate(name="shift", function=lambda x: x + x)
        >>> double.group.name, double.checked
        ('tensor', None)
    """

    name: str
    function: Callable[..., Any]
    applies: Callable[[Call], bool] = always
    group: Group = TENSOR
    priority: Priority = 0
    checked: Callable[..., Any] | None = None
    ready: Callable[..., Callable[..., Any] | None] | None = None
    always_wins: bool = False


def fitting(candidates: Sequence[Candidate], call: Call) -> list[Candidate]:
    """Return those that can and may compute a call, the most promising first."""
    ranks = {each.name: _rank(each, call) for each in candidates}
    able = [c for c in candidates if min(ranks[c.name]) >= 0 and c.applies(call)]
    return sorted(able, key=lambda each: ranks[each.name], reverse=True)


def batches(candidates: Sequence[Candidate], call: Call) -> Iterator[list[Candidate]]:
    """Yield fitting candidates of equal rank together, the most promising first."""
    for _, equals in groupby(fitting(candidates, call), key=lambda each: _rank(each, call)):
        yield list(equals)


def _rank(candidate: Candidate, call: Call) -> tuple[int, int]:
    return _number(candidate.group.priority, call), _number(candidate.priority, call)


def _number(priority: Priority, call: Call) -> int:
    return priority(call) if callable(priority) else priority


def whole(*arguments: Any) -> tuple[Any, ...]:
    """Return the arguments as they are, for ops whose reference is cheap."""
    return arguments


@dataclass(frozen=True, kw_only=True)
class Op:
    """An operation with several candidates.

    Every function takes the positional arguments of the op, already checked.

    Attributes:
        name: Its name in `hotgrid.kernels`, in keys and on the command line.
        reference: The readable oracle; the truth that candidates are held to.
        candidates: In the order in which equals are tried; at least one must apply to
            every call.
        describe: Tells the tuner of a call.
        work: The least that a call must do.
        compare: `(expected, found, *arguments)`: None, or what differs in a few words.
        sample: `(shape, dtype, device, **options)`: arguments with numbers in them, for
            `hotgrid tune`.
        options: What `sample` takes beside the shape, with defaults; each is an option of
            `hotgrid tune`.
        excerpt: A smaller call of the same kind, on which candidates are compared with the
            reference.

    Example:
        >>> from hotgrid.kernels import OPS
        >>> op = OPS["topk"].op
        >>> op.name, "k" in op.options
        ('topk', True)
    """

    name: str
    reference: Callable[..., Any]
    candidates: tuple[Candidate, ...]
    describe: Callable[..., Call]
    work: Callable[[Call], Work]
    compare: Callable[..., str | None]
    sample: Callable[..., tuple[Any, ...]]
    options: Mapping[str, object] = field(default_factory=dict)
    excerpt: Callable[..., tuple[Any, ...]] = whole

    def with_candidates(self, *candidates: Candidate) -> "Op":
        """Return the same op with other candidates."""
        return replace(self, candidates=candidates)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the candidates, in order."""
        return tuple(each.name for each in self.candidates)
