"""The message of a mismatch: one block that says what, where and why."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from hotgrid.errors import ContractError, ShapeMismatch, near

from ._matcher import Matcher
from ._parse import Term, shortened
from ._solve import Mismatch, shown

_HERE = __name__.rpartition(".")[0]
_LONGEST_SHOWN = 64


def written(terms: Sequence[Term]) -> str:
    """A contract as it is printed everywhere: `[b, h=(a*p), ..., c]`."""
    return f"[{', '.join(map(str, terms))}]"


def location() -> str | None:
    """The caller's line: the nearest frame that is neither ours nor torch's."""
    # Through an exception, because torch.compile warns loudly about sys._getframe.
    try:
        raise LookupError
    except LookupError as here:
        trace = here.__traceback__
    frame = trace.tb_frame if trace else None
    while frame is not None:
        # torch's frames are between a module's forward and the line that calls it.
        if not f"{frame.f_globals.get('__name__', '')}.".startswith((f"{_HERE}.", "torch.")):
            name = Path(frame.f_code.co_filename).name
            return f"{name}:{frame.f_lineno} in {frame.f_code.co_name}"
        frame = frame.f_back
    return None


def explained(
    matcher: Matcher,
    problem: Mismatch,
    shapes: Sequence[tuple[int, ...] | None],
    bindings: Mapping[str, int],
    *,
    arguments: Sequence[str] = (),
    function: str | None = None,
    at: str | None = None,
) -> ContractError:
    """The error for a mismatch, ready to be raised."""
    terms = matcher.groups[problem.group]
    shape = shapes[problem.group]
    contract = written(terms)
    argument = arguments[problem.group] if arguments else None
    reason = problem.reason + _hint(matcher, bindings)
    rows = [("at", at), ("function", function), ("argument", argument)]
    if problem.dimension is not None and shape is not None:
        size = shown(shape[problem.dimension])
        against = shortened(str(problem.term))
        rows.append(("dimension", f"{problem.dimension} is {size}, against {against}"))
    rows += [
        ("because", shortened(reason)),
        ("shape", _marked(shape, problem.dimension)),
        ("contract", shortened(contract)),
        ("bindings", shortened(_listed(bindings))),
    ]
    for other, other_shape in enumerate(shapes):
        if arguments and other != problem.group and other_shape is not None:
            other_contract = shortened(written(matcher.groups[other]))
            text = f"{_tuple(other_shape)} against {other_contract}"
            rows.append((f"{arguments[other]}", text))
    block = "\n".join(f"  {key + ':':<11} {text}" for key, text in rows if text is not None)
    error = ContractError(f"the shape does not meet its contract\n{block}")
    error.mismatch = ShapeMismatch(
        contract=contract,
        shape=shape,
        dimension=problem.dimension,
        expression=str(problem.term) if problem.term else None,
        reason=reason,
        bindings=dict(bindings),
        argument=argument,
        location=at,
    )
    return error


def unknown_key(key: str, names: Sequence[str], contract: str) -> ContractError:
    """The error for a name that the contract does not have."""
    return ContractError(
        f"`{shortened(key)}` is not a name of the contract{near(key, names)}\n"
        f"  contract:   {shortened(contract)}\n"
        f"  names:      {shortened(', '.join(names)) or 'none'}"
    )


def _marked(shape: tuple[int, ...] | None, dimension: int | None) -> str:
    if shape is None:
        return "none"
    text = _tuple(shape)
    if dimension is None:
        return text
    if len(shape) > _LONGEST_SHOWN:
        return text
    start = 1 + sum(len(shown(size)) + 2 for size in shape[:dimension])
    return f"{text}\n{' ' * (14 + start)}{'^' * len(shown(shape[dimension]))}"


def _tuple(shape: tuple[int, ...]) -> str:
    if len(shape) > _LONGEST_SHOWN:
        return f"({', '.join(map(shown, shape[:4]))}, ... {len(shape):,} sizes)"
    return f"({', '.join(map(shown, shape))}{',' if len(shape) == 1 else ''})"


def _listed(bindings: Mapping[str, int]) -> str:
    sizes = [(name, size if abs(size) < 10**40 else "...") for name, size in bindings.items()]
    return "{" + ", ".join(f"{name}: {size}" for name, size in sizes) + "}"


def _hint(matcher: Matcher, bindings: Mapping[str, int]) -> str:
    """A name that was given, is not in the contract, and looks like one that is unbound."""
    unbound = [name for name in matcher.names if name not in bindings]
    for name in bindings:
        if name not in matcher.names and (hint := near(name, unbound)):
            return f" (`{name}` was given, which is not in the contract{hint})"
    return ""
