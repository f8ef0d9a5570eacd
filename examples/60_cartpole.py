"""Learn to balance a pole, five runs side by side, and film the best.

The environment is a pure function over tensors, and every weight has a leading axis of seeds,
so that all runs and all copies of the environment share a few operations. The folder has
checkpoints, events, `report.html` and a film.
Run it with `python examples/60_cartpole.py [--out DIR] [--seeds 5] [--steps 100000]`.
"""

import argparse
from pathlib import Path

from hotgrid.train import rl


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--out", type=Path, default=Path("out/cartpole"))
    options.add_argument("--seeds", type=int, default=5)
    options.add_argument("--steps", type=int, default=100_000)
    options.add_argument("--device", default="cpu")
    options.add_argument("--size", type=int, help="a small run, with this many copies")
    given = options.parse_args()
    recipe = rl.recipe_for("cartpole")
    settings, steps = recipe.settings, given.steps
    if given.size is not None:
        settings, steps = rl.OffPolicy(copies=given.size, episodes=5, final_episodes=5), 3000

    # %% Learn
    trainer = rl.RLTrainer(
        "cartpole",
        learner=recipe.learner,
        settings=settings,
        steps=steps,
        seeds=given.seeds,
        folder=given.out,
        device=given.device,
    )
    outcome = trainer.run(resume="auto")
    for seed, returns in enumerate(outcome.returns):
        print(f"run {seed}: mean return {returns.mean():.1f} over {len(returns)} episodes")

    # %% Watch
    pictures = rl.film(rl.load_policy(given.out), given.out / "cartpole.gif", steps=250)
    print(f"{given.out / 'cartpole.gif'}: {pictures} pictures")


if __name__ == "__main__":
    main()
