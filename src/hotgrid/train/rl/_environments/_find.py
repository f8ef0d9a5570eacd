"""Environments by name."""

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
    """Return the environment of a name.

    Raises:
        ArgumentError: There is none.

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


def environment_to_show(name: str) -> Environment:
    """Return the environment of a run by its name, where a policy of it may act.

    That of `gymnasium:ID` is hotgrid's if one equals it; any other is a `GymnasiumTask`.

    Raises:
        ArgumentError: There is none.
        MissingPartError: Gymnasium is needed and not installed.

    Example:
        >>> environment_to_show("gymnasium:CartPole-v1").name
        'cartpole'
    """
    if not name.startswith(PREFIX):
        return find_environment(name)
    return twin_of(name.removeprefix(PREFIX)) or GymnasiumTask(name)
