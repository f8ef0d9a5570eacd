"""The commands of `hotgrid train`, as import strings."""

from types import MappingProxyType

from cyclopts import App

from hotgrid.cli._command_group import command_group

_EPILOGUE = """\
A run is a folder that `hotgrid.train.Trainer` has written: checkpoints/,
events.jsonl, report.html and run.toml. Runs that have not ended can be read
too.

Examples:
  hotgrid train show out/run
  hotgrid train compare out/run-a out/run-b
"""

# Name: where it is, what it does, examples.
_COMMANDS = MappingProxyType(
    {
        "show": (
            "_show:show",
            "Show the curves and the groups of a run.",
            """\
Examples:
  hotgrid train show out/run
  hotgrid train show out/run --only valid/loss --json | python -m json.tool
  hotgrid train show out/run --html report.html
""",
        ),
        "compare": (
            "_compare:compare",
            "Compare the curves, values and settings of runs.",
            """\
Examples:
  hotgrid train compare out/run-a out/run-b
  hotgrid train compare out/* --only valid/loss --json
""",
        ),
    }
)


def train_group() -> App:
    """The group of commands."""
    return command_group("train", "Show training runs and compare them.", _EPILOGUE, _COMMANDS)
