"""rl: off-policy reinforcement learning on the device. A part of `hotgrid.train`.

Environments are pure functions over tensors, so that thousands of copies take a step
together; every weight has a leading axis of seeds, so that many runs train as one. An
`RLTrainer` collects, learns, evaluates and saves; a `Learner` such as `DQN` or `SAC` is data,
and becomes an `Agent` for an environment. Gymnasium's environments take part as well.
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
    LifeKeeper as LifeKeeper,
    MountainCar as MountainCar,
    Pendulum as Pendulum,
    Stepped as Stepped,
    Transition as Transition,
    Wake as Wake,
    World as World,
    environments as environments,
    find_environment as find_environment,
)
from ._learners import (
    DQN as DQN,
    SAC as SAC,
    Agent as Agent,
    Learner as Learner,
    Learnt as Learnt,
    find_learner as find_learner,
    learner_from_json as learner_from_json,
    learner_to_json as learner_to_json,
)
from ._replay import (
    Batch as Batch,
    NSteps as NSteps,
    Prioritised as Prioritised,
    PrioritisedRing as PrioritisedRing,
    Ring as Ring,
    Rows as Rows,
    Uniform as Uniform,
    WideTree as WideTree,
    replay_of as replay_of,
)
from ._training import (
    OffPolicy as OffPolicy,
    Returns as Returns,
    RLOutcome as RLOutcome,
    RLRecipe as RLRecipe,
    RLTrainer as RLTrainer,
    Rounds as Rounds,
    evaluate as evaluate,
    recipe_for as recipe_for,
)
from ._watch import (
    Trained as Trained,
    film as film,
    frames as frames,
    load_policy as load_policy,
)
from ._weights import Dense as Dense, Weights as Weights
