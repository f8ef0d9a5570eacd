"""Learners: DQN and SAC."""

from ._dqn import DQN as DQN
from ._learner import Agent as Agent, Learner as Learner, Learnt as Learnt
from ._sac import SAC as SAC
