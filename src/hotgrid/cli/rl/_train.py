"""`hotgrid rl train`: learn an environment."""

from __future__ import annotations

import ast
from dataclasses import fields, replace
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from hotgrid.cli._terminal import Terminal
from hotgrid.errors import ArgumentError, near

from ._own import environment_of


def train(
    environment: str,
    /,
    *,
    seed: int = 0,
    steps: int | None = None,
    out: Path | None = None,
    learner: str | None = None,
    seeds: int = 1,
    device: str = "cpu",
    resume: bool = False,
    set: Annotated[tuple[str, ...], Parameter(metavar="KEY=VALUE")] = (),
) -> None:
    """Train an agent on an environment.

    CartPole, Pendulum and the wake have recipes of their own. All others begin with that of
    CartPole, or of Pendulum where actions are real numbers, which does not solve each of them:
    with it, mountain-car is not solved for every seed.

    Args:
        environment: A name from `hotgrid rl list`, gymnasium:ID, or a class of your own as
            file.py:Class or package.module:Class.
        seed: Random seed; by default 0.
        steps: Steps of the environment for each seed; by default those of the recipe.
        out: The folder of the run; without it nothing is written.
        learner: dqn or sac; by default the one that suits the environment.
        seeds: How many runs to train side by side, as one program.
        device: cpu or cuda.
        resume: Continue the run in the folder.
        set: A setting of the learner or of the loop, such as rate=3e-4; repeatable. The keys
            are listed below.
    """
    from hotgrid.train.rl import RLTrainer, find_learner
    from hotgrid.train.rl._training import recipe_of

    place = environment_of(environment)
    chosen = recipe_of(place)
    kind = chosen.learner if learner is None else find_learner(learner)()
    if learner is not None and type(chosen.learner) is type(kind):
        kind = chosen.learner
    made, settings = _changed(kind, chosen.settings, set)
    trainer = RLTrainer(
        place,
        learner=made,
        settings=settings,
        steps=steps,
        seed=seed,
        seeds=seeds,
        folder=out,
        device=device,
    )
    outcome = trainer.run(resume=resume)
    console = Terminal(highlight=False)
    if outcome.why == "stopped":
        console.out(f"stopped at step {outcome.step}; --resume continues", highlight=False)
        return
    means = outcome.returns.mean(-1).tolist()
    if seeds > 1:
        for number, mean in enumerate(means):
            console.out(f"  run {number}: {mean:.1f}", highlight=False)
    count = outcome.returns.numel()
    console.out(f"mean return {outcome.mean:.1f} over {count} episodes", highlight=False)


def _changed(learner: Any, settings: Any, given: tuple[str, ...]) -> tuple[Any, Any]:
    """The learner and the settings with the values that were given."""
    for text in given:
        name, equals, value = text.partition("=")
        if not equals:
            raise ArgumentError(f"`--set {text}` must be KEY=VALUE, such as rate=3e-4")
        names = {each.name for part in (learner, settings) for each in fields(part)}
        known = sorted((names | {"capacity"}) - {"replay"})
        if name not in known:
            raise ArgumentError(
                f"`--set {text}`: there is no setting `{name}` of {learner.name}"
                f"{near(name, known)}; there are {', '.join(known)}"
            )
        read = _read(name, value)
        if name == "capacity":
            settings = replace(settings, replay=replace(settings.replay, capacity=read))
        elif name in {each.name for each in fields(learner)}:
            learner = replace(learner, **{name: read})
        else:
            settings = replace(settings, **{name: read})
    return learner, settings


_WORDS = {"true": True, "yes": True, "false": False, "no": False, "none": None}


def _read(name: str, value: str) -> Any:
    if value.lower() in _WORDS:
        return _WORDS[value.lower()]
    try:
        return ast.literal_eval(value)
    except (ValueError, SyntaxError):
        pass
    raise ArgumentError(
        f"`--set {name}={value}`: {value!r} is not a number such as 1e-3, sizes such as "
        "(64, 64), true, false or none"
    )
