"""Environments: tensor environments, copies of them, and Gymnasium's."""

from ._acrobot import Acrobot as Acrobot
from ._capture import host_work as host_work
from ._cartpole import CartPole as CartPole
from ._check import check_environment as check_environment
from ._copies import Copies as Copies, Transition as Transition, World as World
from ._environment import (
    Actions as Actions,
    Box as Box,
    Discrete as Discrete,
    Environment as Environment,
    Stepped as Stepped,
)
from ._find import (
    environment_text as environment_text,
    environment_to_show as environment_to_show,
    environments as environments,
    find_environment as find_environment,
    is_included as is_included,
    twin_of as twin_of,
)
from ._gymnasium import (
    PREFIX as PREFIX,
    GymnasiumCopies as GymnasiumCopies,
    GymnasiumTask as GymnasiumTask,
)
from ._life import LifeKeeper as LifeKeeper
from ._mountain_car import MountainCar as MountainCar
from ._pendulum import Pendulum as Pendulum
from ._wake import Wake as Wake
