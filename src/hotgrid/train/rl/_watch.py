"""Watching a run: its best policy from the folder, and a film of it."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from hotgrid.errors import ArgumentError, DamagedError, MissingPartError
from hotgrid.files import whole_file
from hotgrid.store import Checkpoints

from ._draws import Draws
from ._environments import Environment, find_environment
from ._learners import Agent, learner_from_json


class Trained(NamedTuple):
    """A policy from the folder of a run.

    Attributes:
        environment: Where it acts.
        agent: The best policy of every seed.
        returns: The mean return of each at its best evaluation, `[seeds]`.
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
    environment: Environment | None = None,
) -> Trained:
    """Return the best policies of a run, from its newest checkpoint.

    Args:
        folder: The folder of the run.
        device: Where to put the policies.
        environment: The environment of the run, if it is one of your own.

    Raises:
        StoreError: There is no checkpoint in the folder.
        DamagedError: It was not saved by an `RLTrainer`.
        ArgumentError: The run is of an environment that is not one of hotgrid's, and it was
            not given.
    """
    checkpoints = Checkpoints(Path(folder) / "checkpoints")
    notes = checkpoints.load(None, ())
    if not isinstance(notes.extra.get("learner"), dict):
        raise DamagedError(f"step {notes.step} in `{folder}` was not saved by an `RLTrainer`")
    if environment is None:
        environment = find_environment(notes.extra["environment"])
    learner = learner_from_json(notes.extra["learner"])
    agent = learner.begin(
        environment.observations,
        environment.actions,
        notes.extra["seeds"],
        Draws(0, device),
        environment.units,
    )
    policy = agent.policy()
    wanted = {f"best/{name}": tensor for name, tensor in policy.items()}
    found = checkpoints.load(notes.step, {**wanted, "best/returns": None})
    return Trained(environment, agent, found.tensors["best/returns"], found.step)


def frames(trained: Trained, *, steps: int, seed: int = 0) -> Iterator[Tensor]:
    """Give pictures of the seed that did best, uint8 `[height, width, 3]`, as it acts.

    Episodes follow each other.

    Args:
        trained: The policy.
        steps: How many pictures.
        seed: Where random numbers begin.
    """
    env, agent = trained.environment, trained.agent
    seeds, best = len(trained.returns), int(trained.returns.argmax())
    draws = Draws(seed, trained.returns.device)
    state, left = _start(env, seeds, draws), env.limit
    for _ in range(steps):
        yield env.draw(state[best, 0].cpu())
        state, _, terminated = env.step(state, agent.act(env.observe(state)))
        left -= 1
        if left == 0 or bool(terminated[best, 0]):
            yield env.draw(state[best, 0].cpu())
            state, left = _start(env, seeds, draws), env.limit


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


def _start(env: Environment, seeds: int, draws: Draws) -> Tensor:
    return env.initial(draws.uniform(seeds, 1, env.randoms, dtype=env.dtype))


def _write_gif(path: Path, pictures: list[Any], rate: int) -> None:
    from PIL import Image

    first, *others = [Image.fromarray(each) for each in pictures]
    # Players take delays below 20 ms for a mistake.
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
