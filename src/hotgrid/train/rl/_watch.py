"""Watching a run: its best policy from the folder, acting, and a film of it."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from hotgrid.errors import ArgumentError, DamagedError, MissingPartError
from hotgrid.files import whole_file
from hotgrid.store import Checkpoint, Checkpoints

from ._draws import Draws
from ._environments import (
    Discrete,
    Environment,
    GymnasiumTask,
    check_environment,
    environment_text,
    environment_to_show,
    is_included,
)
from ._learners import Agent, Learner, learner_from_json
from ._newest import load_newest


class Trained(NamedTuple):
    """A policy from the folder of a run.

    Attributes:
        environment: The environment that it acts in.
        agent: The best policy of every seed.
        returns: The mean return of each at its best evaluation, `[seeds]`; minus infinity
            before the first.
        step: The step of the checkpoint.
    """

    environment: Environment
    agent: Agent
    returns: Tensor
    step: int


def load_policy(
    folder: str | Path,
    device: torch.device | str = "cpu",
    *,
    environment: Environment | str | None = None,
    learner: type[Learner] | None = None,
) -> Trained:
    """Return the best policies of a run, from its newest checkpoint that is good.

    Args:
        folder: The folder of the run.
        device: Where to put the policies.
        environment: The environment of the run, if it is one of your own; or a name, such as
            `gymnasium:CartPole-v1`. A policy of Gymnasium's acts in the environment of hotgrid
            that equals it; if there is none, it cannot be shown.
        learner: The class of the learner, if it is one of your own.

    Raises:
        StoreError: There is no checkpoint in the folder.
        DamagedError: It was not saved by an `RLTrainer`.
        ArgumentError: The run is of an environment that is not one of hotgrid's, and it was
            not given.
        MissingPartError: The run is of Gymnasium's, which is not installed.
    """
    if Path(folder).is_file():
        raise ArgumentError(f"`{folder}` is a file; give the folder of a run")
    checkpoints = Checkpoints(Path(folder) / "checkpoints")
    made: list[tuple[Environment, Agent, Tensor]] = []

    def load(notes: Checkpoint) -> Checkpoint:
        if not isinstance(notes.extra.get("learner"), dict):
            raise DamagedError(
                f"step {notes.step} in `{folder}` was not saved by an `RLTrainer`"
            )
        env = _environment_of(folder, notes.extra["environment"], environment, device)
        how = learner_from_json(notes.extra["learner"], *() if learner is None else (learner,))
        seeds, draws = notes.extra["seeds"], Draws(0, device)
        agent = how.begin(env.observations, env.actions, seeds, draws, env.units)
        returns = torch.empty(seeds, dtype=torch.float64, device=draws.device)
        made.append((env, agent, returns))
        wanted = {f"best/{name}": tensor for name, tensor in agent.policy().items()}
        return checkpoints.load(notes.step, {**wanted, "best/returns": returns})

    found = load_newest(checkpoints, load)
    return Trained(*made[-1], found.step)


def _environment_of(
    folder: str | Path,
    name: str,
    given: Environment | str | None,
    device: torch.device | str,
) -> Environment:
    if given is None:
        try:
            return environment_to_show(name)
        except ArgumentError as problem:
            raise ArgumentError(
                f"the run in `{folder}` is of `{name}`, which hotgrid does not have; give it: "
                f"load_policy(folder, environment=...), or --environment file.py:Class "
                f"({problem})"
            ) from None
    if isinstance(given, Environment):
        check_environment(given, Draws(0, device).device)
        env = given
    elif isinstance(given, str):
        env = environment_to_show(given)
    else:
        raise ArgumentError(f"`environment` is {given!r}; expected an Environment or a name")
    # A name, or the class with the fields that are not defaults.
    trained = name.removeprefix("gymnasium:").partition("(")[0]
    names = (env.name, env.twin) if is_included(env) or isinstance(env, GymnasiumTask) else ()
    if trained not in (*names, type(env).__name__):
        raise ArgumentError(
            f"the run in `{folder}` is of `{name}`, and the environment given is "
            f"`{environment_text(env)}`"
        )
    return env


class Player:
    """The seed that did best, acting step by step; episodes follow each other.

    Args:
        trained: The policy.
        seed: Random seed.

    Attributes:
        episode: The number of the episode, from 1.
        steps: Steps in it.
        total: Its return so far.
        ended: Whether it has ended; the next step begins another one.
    """

    def __init__(self, trained: Trained, seed: int = 0) -> None:
        self.trained = trained
        self._draws = Draws(seed, trained.returns.device)
        self.episode = 0
        self.restart()

    @property
    def best(self) -> int:
        """The seed that is shown."""
        return int(self.trained.returns.argmax())

    def restart(self) -> None:
        """Begin a new episode."""
        env, seeds = self.trained.environment, len(self.trained.returns)
        self._state = env.initial(self._draws.uniform(seeds, 1, env.randoms, dtype=env.dtype))
        self.episode, self.steps, self.total, self.ended = self.episode + 1, 0, 0.0, False

    def step(self, *, at_random: bool = False) -> None:
        """Take one action, by the policy or at random."""
        if self.ended:
            self.restart()
            return
        env = self.trained.environment
        chosen = self._random() if at_random else None
        action = self.trained.agent.act(env.observe(self._state)) if chosen is None else chosen
        self._state, reward, terminated = env.step(self._state, action)
        self.steps += 1
        self.total += float(reward[self.best, 0])
        self.ended = self.steps >= env.limit or bool(terminated[self.best, 0])

    def _random(self) -> Tensor:
        actions, seeds = self.trained.environment.actions, len(self.trained.returns)
        if isinstance(actions, Discrete):
            return self._draws.below(actions.count, seeds, 1)
        low, high = (
            torch.tensor(each, device=self._draws.device)
            for each in (actions.low, actions.high)
        )
        return low + (high - low) * self._draws.uniform(seeds, 1, actions.width)

    def picture(self) -> Tensor:
        """Return a picture of the present state, uint8 `[height, width, 3]`.

        Raises:
            ArgumentError: The environment draws something else.
        """
        env = self.trained.environment
        found = env.draw(self._state[self.best, 0].cpu())
        right = isinstance(found, Tensor) and found.dtype == torch.uint8 and found.ndim == 3
        if not right or found.shape[2] != 3 or found.shape[0] % 2 or found.shape[1] % 2:
            seen = f"{found.dtype} {list(found.shape)}" if isinstance(found, Tensor) else found
            raise ArgumentError(
                f"`{type(env).__name__}.draw` returned {seen}; expected a uint8 tensor "
                "[height, width, 3] with even height and width"
            )
        return found


def frames(trained: Trained, *, steps: int, seed: int = 0) -> Iterator[Tensor]:
    """Yield pictures of the seed that did best, uint8 `[height, width, 3]`, as it acts.

    Episodes follow each other; the last picture of one does not count as a step.

    Args:
        trained: The policy.
        steps: How many steps to show.
        seed: Random seed.
    """
    player = Player(trained, seed)
    for _ in range(steps):
        yield player.picture()
        player.step()
        if player.ended:
            yield player.picture()
            player.step()


def film(trained: Trained, path: str | Path, *, steps: int = 500, seed: int = 0) -> int:
    """Write a film of the best policy: `.gif`, or `.mp4` with PyAV.

    Returns:
        How many pictures it has.

    Raises:
        ArgumentError: The suffix is another one.
        MissingPartError: An `.mp4` is wanted and PyAV is not installed.
    """
    if steps < 1:
        raise ArgumentError(f"a film needs at least 1 step, got {steps}")
    path = Path(path)
    writers = {".gif": _write_gif, ".mp4": _write_mp4}
    if path.suffix not in writers:
        raise ArgumentError(f"`{path}` is not a film; it must end in .mp4 or .gif")
    pictures = [picture.numpy() for picture in frames(trained, steps=steps, seed=seed)]
    with whole_file(path) as aside:
        writers[path.suffix](aside, pictures, trained.environment.rate)
    return len(pictures)


def _write_gif(path: Path, pictures: list[Any], rate: int) -> None:
    from PIL import Image

    first, *others = [Image.fromarray(each) for each in pictures]
    # Players treat delays below 20 ms as a mistake.
    delay = max(20, round(1000 / rate))
    first.save(path, "GIF", save_all=True, append_images=others, duration=delay, loop=0)


def _write_mp4(path: Path, pictures: list[Any], rate: int) -> None:
    try:
        import av
    except ImportError:
        raise MissingPartError(
            "an .mp4 needs PyAV: run `pip install hotgrid[video]`, or write a .gif"
        ) from None
    with av.open(path, "w", format="mp4") as video:
        stream: Any = video.add_stream("libx264", rate=Fraction(rate))
        stream.height, stream.width = pictures[0].shape[:2]
        stream.pix_fmt = "yuv420p"
        for each in pictures:
            video.mux(stream.encode(av.VideoFrame.from_ndarray(each, format="rgb24")))
        video.mux(stream.encode())
