"""Learners: DQN and SAC."""

from ._dqn import DQN as DQN
from ._json import (
    LEARNERS as LEARNERS,
    find_learner as find_learner,
    learner_from_json as learner_from_json,
    learner_to_json as learner_to_json,
)
from ._learner import Agent as Agent, Learner as Learner, Learnt as Learnt
from ._sac import SAC as SAC
