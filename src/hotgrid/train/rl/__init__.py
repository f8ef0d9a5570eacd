"""rl: off-policy reinforcement learning on the device. A part of `hotgrid.train`.

Environments are pure functions over tensors, so that thousands of copies take a step
together; every parameter has a leading axis of seeds, so that many runs train as one.
"""

from ._draws import Draws as Draws
from ._environments import (
    Acrobot as Acrobot,
    Box as Box,
    CartPole as CartPole,
    Copies as Copies,
    Discrete as Discrete,
    Environment as Environment,
    GymnasiumCopies as GymnasiumCopies,
    MountainCar as MountainCar,
    Pendulum as Pendulum,
    Stepped as Stepped,
    Transition as Transition,
    World as World,
    environments as environments,
    find_environment as find_environment,
)
