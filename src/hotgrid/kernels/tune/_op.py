"""`Op`: all that the tuner needs to know of one operation, as data."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ._call import Call, Work
from ._candidate import Candidate


def whole(*arguments: Any) -> tuple[Any, ...]:
    """Return the arguments as they are, for ops whose reference is cheap."""
    return arguments


@dataclass(frozen=True, kw_only=True)
class Op:
    """An operation with several candidates.

    Every function takes the positional arguments of the op, as its front has checked them.

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
