"""`Place`: the environment of a run: a tensor environment, or one of Gymnasium."""

import torch

from hotgrid.errors import ArgumentError
from hotgrid.train.rl._draws import Draws
from hotgrid.train.rl._environments import (
    PREFIX,
    Box,
    Copies,
    Environment,
    GymnasiumCopies,
    World,
    check_environment,
    environment_text,
    environments,
    find_environment,
    host_work,
    twin_of,
)

from ._recipes import RLRecipe, recipe_for


class Place:
    """An environment by itself or by name.

    Args:
        environment: A tensor environment, its name, or `gymnasium:ID`.
        device: The device of the tensors.

    Attributes:
        name: Its name.
        recipe: Its name in recipes.
        text: Its description, for the record.
        tensor: Whether it is a tensor environment.
        host_work: The work in it that keeps rounds out of a CUDA graph, or None.
        actions: The actions that it takes.
        observations: The length of an observation.
        units: The unit of each of them, or None.

    Raises:
        ArgumentError: There is no such environment, or it does not keep to the interface.
    """

    def __init__(self, environment: Environment | str, device: torch.device) -> None:
        self._device = device
        self.host_work: str | None = None
        self._id: str | None = None
        if isinstance(environment, str) and environment.startswith(PREFIX):
            self._id = environment.removeprefix(PREFIX)
            probe = GymnasiumCopies(self._id, 1, 1, seed=0)
            self.actions, self.observations = probe.actions, probe.observations
            probe.close()
            twin = twin_of(self._id)
            self.name = self.recipe = environment if twin is None else twin.name
            self.units = None if twin is None else twin.units
            self.text = environment
            self.tensor = False
            return
        if isinstance(environment, str):
            environment = find_environment(environment)
        if not isinstance(environment, Environment):
            raise ArgumentError(
                f"`environment` is {environment!r}; expected an Environment, such as "
                "CartPole(), or a name"
            )
        check_environment(environment, device)
        self._environment = environment
        self.name = environment.name
        # A class of one's own may derive from another environment, or have its name.
        known = environments().get(self.name)
        self.recipe = (
            self.name if known is not None and isinstance(environment, type(known)) else ""
        )
        self.text = environment_text(environment)
        self.tensor = True
        self.host_work = host_work(environment, device)
        self.actions, self.observations = environment.actions, environment.observations
        self.units = environment.units

    def world(self, seeds: int, copies: int, draws: Draws, seed: int) -> World:
        """Return copies in fresh states."""
        if self._id is None:
            return Copies(self._environment, seeds, copies, draws)
        return GymnasiumCopies(self._id, seeds, copies, seed=seed, device=self._device)


def recipe_of(environment: Environment | str) -> RLRecipe:
    """Return the settings that `RLTrainer` begins with.

    Example:
        >>> recipe_of("pendulum").learner.name
        'sac'
    """
    place = Place(environment, torch.device("cpu"))
    return recipe_for(place.recipe, isinstance(place.actions, Box))
