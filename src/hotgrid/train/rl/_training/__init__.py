"""The loop of off-policy learning."""

from ._evaluation import Returns as Returns, evaluate as evaluate
from ._recipes import RLRecipe as RLRecipe, recipe_for as recipe_for
from ._rounds import Rounds as Rounds
from ._settings import OffPolicy as OffPolicy
from ._trainer import RLOutcome as RLOutcome, RLTrainer as RLTrainer
from ._worlds import recipe_of as recipe_of
