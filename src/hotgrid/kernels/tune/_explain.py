"""Why a candidate wins: every candidate of a call, timed to the end."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch

from hotgrid.config import current
from hotgrid.errors import ArgumentError, HotgridError

from ._dispatch import Tuned
from ._measure._bandwidth import existing
from ._trials._ranking import Outcome, Ranking
from ._trials._trial import compete, limit_of


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """The table behind a choice.

    Attributes:
        call: The call, with exact sizes.
        ranking: Every candidate that applies, timed now; nothing stopped early.
        absent: The candidates that do not apply.
        chosen: The candidate that computes such a call under the settings in force.
        bytes: The least that must be read and written.
        flops: The least that must be computed.
        limit: The seconds that the hardware needs at least; 0 for very small calls.

    Example:
        >>> from hotgrid.kernels import OPS
        >>> found = explain(OPS["topk"], (4, 32), {"k": "2"})
        >>> found.ranking.outcomes[0].able, found.bytes > 512
        (True, True)
    """

    call: str
    ranking: Ranking
    absent: tuple[str, ...]
    chosen: str
    bytes: float
    flops: float
    limit: float

    @property
    def outcomes(self) -> tuple[Outcome, ...]:
        """Every candidate that was timed, the best first."""
        return self.ranking.outcomes


def explain(
    tuned: Tuned,
    shape: tuple[int, ...],
    options: Mapping[str, str] | None = None,
    *,
    dtype: str = "float32",
    device: torch.device | str = "cpu",
) -> Explanation:
    """Time every candidate of an op on one shape and say which one computes it.

    Args:
        tuned: The op.
        shape: The shape of the main tensor.
        options: The op's own, as text; what is left out has its default.
        dtype: For example `float32`.
        device: Where to run.

    Raises:
        ArgumentError: An option does not exist or has a bad value, or the op refuses it.

    Example:
        >>> from hotgrid.kernels import OPS
        >>> explain(OPS["topk"], (4, 32)).call
        'topk float32 cpu rows outer=4 n=32 inner=1 k=1 largest=True sorted=True'
    """
    arguments = sampled(tuned, shape, options or {}, dtype=dtype, device=device)
    op = tuned.op
    call = op.describe(*arguments)
    work = op.work(call)
    chosen = tuned.candidate_for(*arguments).name
    thorough = replace(current().autotune, level="full")
    ranking = compete(op, call, arguments, thorough)
    tried = {each.name for each in ranking.outcomes}
    return Explanation(
        call=call.key("full"),
        ranking=ranking,
        absent=tuple(name for name in op.names if name not in tried),
        chosen=chosen,
        bytes=work.bytes,
        flops=work.flops,
        limit=limit_of(work, call),
    )


def sampled(
    tuned: Tuned,
    shape: tuple[int, ...],
    options: Mapping[str, str],
    *,
    dtype: str,
    device: torch.device | str,
) -> tuple[Any, ...]:
    """Return arguments of an op for one shape, with numbers in them."""
    op = tuned.op
    unknown = sorted(set(options) - set(op.options))
    if unknown:
        known = ", ".join(op.options)
        raise ArgumentError(f"`{unknown[0]}` is not an option of `{op.name}`; it has {known}")
    kind = getattr(torch, dtype, None)
    if not isinstance(kind, torch.dtype):
        raise ArgumentError(f"`dtype` is {dtype!r}; expected one such as float32 or int64")
    read = {name: _read(name, options[name], op.options[name]) for name in options}
    try:
        return op.sample(shape, kind, torch.device(existing(device)), **{**op.options, **read})
    except HotgridError:
        raise
    except RuntimeError as error:
        first = str(error).partition("\n")[0]
        raise ArgumentError(
            f"`{op.name}` has no {dtype} of shape {shape} on `{device}`: {first}"
        ) from None


def _read(name: str, text: str, default: object) -> object:
    if isinstance(default, bool):
        words = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
        if text.lower() in words:
            return words[text.lower()]
        raise ArgumentError(f"`{name}` is {text!r}; expected true or false")
    if isinstance(default, int | float):
        kind = type(default)
        try:
            number = kind(text)
            if not math.isfinite(number):
                raise ValueError
            return number
        except (ValueError, OverflowError):
            expected = "a whole number" if kind is int else "a number"
            raise ArgumentError(f"`{name}` is {text!r}; expected {expected}") from None
    return text
