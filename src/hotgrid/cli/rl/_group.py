"""The commands of `hotgrid rl`, as import strings."""

from types import MappingProxyType

from cyclopts import App

from hotgrid.cli._command_group import command_group

_EPILOGUE = """\
A run is a folder with checkpoints/, events.jsonl, report.html and run.toml,
which `hotgrid train show` and `hotgrid train compare` read as well.

Examples:
  hotgrid rl list
  hotgrid rl train cartpole --seed 1 --out out/cartpole
  hotgrid rl watch out/cartpole
"""

# Name: where it is, what it does, examples.
_COMMANDS = MappingProxyType(
    {
        "train": (
            "_train:train",
            "Train an agent on an environment; prints the mean return of new episodes.",
            """\
Keys of --set:
  every learner  hidden rate gamma n_steps tau chance
  dqn            double duelling atoms low high clip scale
  sac            actor_rate entropy temperature
  the loop       copies collect updates batch warmup capacity evaluate_every
                 episodes final_episodes

Examples:
  hotgrid rl train cartpole --seed 1 --out out/cartpole
  hotgrid rl train cartpole --seeds 10 --set rate=3e-4 --set batch=64
  hotgrid rl train pendulum --learner sac --out out/pendulum --resume
  hotgrid rl train gymnasium:CartPole-v1 --steps 20000
  hotgrid rl train target.py:Target --steps 5000 --out out/target
""",
        ),
        "watch": (
            "_watch:watch",
            "Watch the best policy of a run, live or as a film.",
            """\
Examples:
  hotgrid rl watch out/cartpole
  hotgrid rl watch out/cartpole --film cartpole.mp4 --steps 1000
  hotgrid rl watch out/target --environment target.py:Target
""",
        ),
        "list": (
            "_list:list_environments",
            "List the environments that come with hotgrid.",
            """\
Examples:
  hotgrid rl list
  hotgrid rl list --json | python -m json.tool
""",
        ),
    }
)


def rl_group() -> App:
    """The group of commands."""
    return command_group(
        "rl", "Train reinforcement-learning agents and watch them.", _EPILOGUE, _COMMANDS
    )
