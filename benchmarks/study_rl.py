"""Claim: ten of ten seeds solve CartPole, SAC holds the pendulum, and a wake loses drag.

Each environment is trained by its recipe; the returns are those of the best policies over
fresh episodes. Runs go into a folder and are resumed: one that is finished is only evaluated.
The drag is that of the wake over an episode from every phase of its cycle, against a cylinder
at rest. A picture of both wakes is written beside the run.

Several batches of seeds of CartPole show whether its recipe holds for more than those it was
chosen with.

    python benchmarks/study_rl.py [--device cpu] [--only cartpole] [--batches 1 2 3]
"""

from pathlib import Path

import torch
from options import parser
from report import report

from hotgrid.train import rl

RUNS = {"cartpole": 10, "pendulum": 3, "wake": 1}


def drags(folder: Path) -> dict[str, float]:
    """The drag of both cylinders, and a picture of their wakes."""
    from PIL import Image

    trained = rl.load_policy(folder)
    env = trained.environment
    assert isinstance(env, rl.Wake)
    starts = env.initial(((torch.arange(8) + 0.5) / 8)[None, :, None])
    found, pictures = {}, []
    for name in ("at rest", "controlled"):
        state, total = starts, torch.zeros(())
        for _ in range(env.limit):
            action = trained.agent.act(env.observe(state))
            goal = env.fastest * env.speed * action[..., 0] * (name == "controlled")
            state, force = env.flow(state, goal, env.interval)
            total = total + force[..., 1].mean()
        found[name] = float(total / env.limit)
        pictures.append(env.draw(state[0, 0]))
    Image.fromarray(torch.cat(pictures).numpy()).save(folder / "wakes.png")
    return found


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--out", type=Path, default=Path("out/study-rl"))
    options.add_argument("--only", nargs="+", default=list(RUNS), choices=list(RUNS))
    options.add_argument(
        "--batches", nargs="+", type=int, default=[1], help="of CartPole: their seeds"
    )
    given = options.parse_args()
    rows, recipes = [], {}
    chosen = [(n, b) for n in given.only for b in (given.batches if n == "cartpole" else [1])]
    for name, batch in chosen:
        folder = given.out / (name if batch == 1 else f"{name}-{batch}")
        trainer = rl.RLTrainer(
            name, seeds=RUNS[name], seed=batch, folder=folder, device=given.device
        )
        means = trainer.run(resume="auto").returns
        recipes[name] = f"{trainer.learner}, {trainer.settings}"
        row = {
            "environment": name,
            "batch": batch,
            "learner": trainer.learner.name,
            "steps": trainer.steps,
            "seeds": RUNS[name],
            "episodes a seed": means.shape[1],
            "mean return": float(means.mean()),
            "lowest seed": float(means.mean(-1).min()),
        }
        if name == "cartpole":
            row["seeds of 475 and more"] = int((means.mean(-1) >= 475).sum())
        if name == "wake":
            drag = drags(folder)
            row["drag, of that at rest"] = drag["controlled"] / drag["at rest"]
        rows.append(row)
    report(f"rl-learning-{given.device}", rows, recipes=recipes)


if __name__ == "__main__":
    main()
