"""Environments by name."""

from dataclasses import fields, is_dataclass

from hotgrid.errors import ArgumentError, near

from ._acrobot import Acrobot
from ._cartpole import CartPole
from ._environment import Environment
from ._gymnasium import PREFIX, GymnasiumTask
from ._life import LifeKeeper
from ._mountain_car import MountainCar
from ._pendulum import Pendulum
from ._wake import Wake

_KNOWN: tuple[type[Environment], ...] = (
    CartPole,
    MountainCar,
    Acrobot,
    Pendulum,
    Wake,
    LifeKeeper,
)


def environments() -> dict[str, Environment]:
    """Return the environments that come with hotgrid, by name.

    Example:
        >>> environments()["cartpole"].limit
        500
    """
    return {each.name: each() for each in _KNOWN}


def twin_of(name: str) -> Environment | None:
    """Return the environment that equals one of Gymnasium, or None.

    Example:
        >>> twin_of("CartPole-v1").name
        'cartpole'
    """
    return next((each for each in environments().values() if each.twin == name), None)


def find_environment(name: str) -> Environment:
    """Return the environment that has a name.

    Raises:
        ArgumentError: There is no such environment.

    Example:
        >>> find_environment("pendulum").twin
        'Pendulum-v1'
    """
    known = environments()
    if name not in known:
        raise ArgumentError(
            f"there is no environment `{name}`{near(name, known)}; there are "
            f"{', '.join(known)}, and `gymnasium:ID` such as gymnasium:CartPole-v1"
        )
    return known[name]


def is_included(environment: Environment) -> bool:
    """Whether an environment is one of hotgrid's, and not of a class derived from one."""
    return type(environment) in _KNOWN


def environment_text(environment: Environment) -> str:
    """Return a description of an environment, for the record of a run.

    It is the name of one of hotgrid's with default settings, and otherwise the class with
    the fields that differ from their defaults.

    Example:
        >>> environment_text(CartPole()), environment_text(CartPole(gravity=3.7))
        ('cartpole', 'CartPole(gravity=3.7)')
    """
    kind = type(environment)
    parts = fields(environment) if is_dataclass(environment) else ()
    found = {each.name: getattr(environment, each.name) for each in parts if each.repr}
    changed = [
        f"{each.name}={found[each.name]!r}"
        for each in parts
        if each.name in found and found[each.name] != each.default
    ]
    if is_included(environment) and not changed:
        return environment.name
    return f"{kind.__name__}({', '.join(changed)})"


def environment_to_show(name: str) -> Environment:
    """Return the environment of a run by its name, for its policy to act in.

    For `gymnasium:ID` it is hotgrid's equal one, if there is one, or else a `GymnasiumTask`.

    Raises:
        ArgumentError: There is no such environment.
        MissingPartError: Gymnasium is needed and not installed.

    Example:
        >>> environment_to_show("gymnasium:CartPole-v1").name
        'cartpole'
    """
    if not name.startswith(PREFIX):
        return find_environment(name)
    return twin_of(name.removeprefix(PREFIX)) or GymnasiumTask(name)
