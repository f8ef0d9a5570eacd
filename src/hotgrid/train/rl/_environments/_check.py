"""The check of an environment: every method is called once, on a few copies."""

import itertools
import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from hotgrid.errors import ArgumentError
from hotgrid.train.rl._draws import Draws

from ._environment import Box, Discrete, Environment

_NEEDED = ("name", "actions", "observations", "shape", "randoms", "limit")


def check_environment(env: Environment, device: torch.device) -> None:
    """Refuse an environment that does not keep to the interface of `Environment`.

    Raises:
        ArgumentError: A part is missing or wrong; the message names it.
    """
    _check_parts(env)
    sizes = {*env.shape, env.observations, env.actions.width}
    # A number of copies that cannot be taken for another size.
    lead = (2, next(n for n in itertools.count(2) if n not in sizes))
    draws = Draws(0, device)
    state = _called(env, "initial", draws.uniform(*lead, env.randoms, dtype=env.dtype))
    _expect(env, "initial", "the state", state, (*lead, *env.shape), None)
    _check_seen(env, state, lead)
    if isinstance(env.actions, Discrete):
        action = draws.below(env.actions.count, *lead)
    else:
        low, high = (
            torch.tensor(x, device=device) for x in (env.actions.low, env.actions.high)
        )
        action = (low + (high - low) * draws.uniform(*lead, env.actions.width)).nan_to_num()
    found = _called(env, "step", state, action)
    if not isinstance(found, tuple) or len(found) != 3:
        raise _wrong(
            env, "step", f"returned {_brief(found)}", "Stepped(state, reward, terminated)"
        )
    following, reward, terminated = found
    _expect(env, "step", "the state", following, (*lead, *env.shape), state.dtype)
    _expect(env, "step", "the reward", reward, lead, torch.float32)
    _expect(env, "step", "`terminated`", terminated, lead, torch.bool)
    _check_seen(env, following, lead)


def _check_parts(env: Environment) -> None:
    kind = type(env).__name__
    for part in _NEEDED:
        if not hasattr(env, part):
            raise ArgumentError(f"`{kind}` has no `{part}`; an Environment needs it")

    def expect(part: str, right: bool, expected: str) -> None:
        if not right:
            raise ArgumentError(
                f"`{kind}.{part}` is {getattr(env, part)!r}; expected {expected}"
            )

    expect("actions", isinstance(env.actions, Discrete | Box), "Discrete(...) or Box(...)")
    expect("observations", _whole(env.observations, 1), "a whole number from 1")
    floats = isinstance(env.dtype, torch.dtype) and env.dtype.is_floating_point
    expect("dtype", floats, "torch.float32 or torch.float64")
    expect("randoms", _whole(env.randoms, 0), "a whole number from 0")
    expect("limit", _whole(env.limit, 1), "a whole number from 1")
    shape: Any = env.shape
    right = isinstance(shape, tuple) and all(_whole(n, 1) for n in shape)
    expect("shape", right, "a tuple of whole numbers from 1, such as (2,)")
    units: Any = env.units
    if units is not None:
        right = isinstance(units, tuple | list) and len(units) == env.observations
        right = right and all(isinstance(x, int | float) and _positive(x) for x in units)
        expect("units", right, f"{env.observations} numbers above 0, one for each observation")


def _check_seen(env: Environment, state: Tensor, lead: tuple[int, ...]) -> None:
    seen = _called(env, "observe", state)
    _expect(env, "observe", "the observation", seen, (*lead, env.observations), torch.float32)


def _called(env: Environment, method: str, *given: Tensor) -> Any:
    call: Callable[..., Any] = getattr(env, method)
    before = [x.clone() for x in given]
    try:
        found = call(*given)
    except Exception as problem:
        words = " and ".join(map(_brief, given))
        reason = f"{type(problem).__name__}: {problem}"
        raise ArgumentError(
            f"`{type(env).__name__}.{method}` fails with {reason} (it was given {words})"
        ) from problem
    for x, y in zip(given, before, strict=True):
        if not torch.equal(x.nan_to_num(), y.nan_to_num()):
            raise _wrong(env, method, "changes what it was given", "new tensors as results")
    return found


def _expect(
    env: Environment,
    method: str,
    what: str,
    found: Any,
    shape: tuple[int, ...],
    dtype: torch.dtype | None,
) -> None:
    if isinstance(found, Tensor) and found.shape == shape and dtype in (None, found.dtype):
        return
    kind = "" if dtype is None else f"{str(dtype).removeprefix('torch.')} "
    raise _wrong(
        env,
        method,
        f"returned {what} as {_brief(found)}",
        f"{kind}{list(shape)} ({shape[0]} seeds of {shape[1]} copies come first)",
    )


def _wrong(env: Environment, method: str, what: str, expected: str) -> ArgumentError:
    return ArgumentError(f"`{type(env).__name__}.{method}` {what}; expected {expected}")


def _brief(found: Any) -> str:
    if isinstance(found, Tensor):
        return f"{str(found.dtype).removeprefix('torch.')} {list(found.shape)}"
    return f"a {type(found).__name__}"


def _whole(value: object, least: int) -> bool:
    return type(value) is int and value >= least


def _positive(value: float) -> bool:
    return math.isfinite(value) and value > 0
