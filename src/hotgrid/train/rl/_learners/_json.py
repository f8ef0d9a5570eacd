"""Learners as JSON, and back: a run can be watched from its folder alone."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from hotgrid.errors import ArgumentError, near
from hotgrid.train._schedules import StepSchedule

from ._dqn import DQN
from ._learner import Learner
from ._sac import SAC

LEARNERS: dict[str, type[Learner]] = {each.name: each for each in (DQN, SAC)}
"""The learners by name."""


def learner_to_json(learner: Learner) -> dict[str, Any]:
    """Return a learner as plain data.

    Example:
        >>> learner_to_json(DQN(hidden=(32,)))["hidden"]
        [32]
    """
    found: dict[str, Any] = {"learner": learner.name}
    for each in fields(learner):
        value = getattr(learner, each.name)
        if isinstance(value, StepSchedule):
            value = value.to_json()
        found[each.name] = list(value) if isinstance(value, tuple) else value
    return found


def learner_from_json(data: Mapping[str, Any], *own: type[Learner]) -> Learner:
    """Return the learner that `learner_to_json` described.

    Args:
        data: The data that it returned.
        own: Learners of your own that it may be.

    Raises:
        ArgumentError: There is no such learner, or it has other fields.

    Example:
        >>> learner_from_json(learner_to_json(DQN())) == DQN()
        True
    """
    given = dict(data)
    name = given.pop("learner", None)
    kind = {each.name: each for each in own}.get(name) or find_learner(name)
    for name, value in given.items():
        if isinstance(value, dict):
            given[name] = StepSchedule.from_json(value)
        elif isinstance(value, list):
            given[name] = tuple(value)
    try:
        return kind(**given)
    except TypeError as problem:
        raise ArgumentError(f"{dict(data)!r} is not a learner: {problem}") from None


def find_learner(name: object) -> type[Learner]:
    """Return the learner with a name.

    Raises:
        ArgumentError: There is no such learner.

    Example:
        >>> find_learner("sac").__name__
        'SAC'
    """
    if name not in LEARNERS:
        raise ArgumentError(
            f"there is no learner {name!r}{near(name, LEARNERS)}; there are "
            f"{', '.join(LEARNERS)}"
        )
    return LEARNERS[str(name)]
