"""The commands of `hotgrid data`, as import strings."""

from types import MappingProxyType

from cyclopts import App

from hotgrid.cli._command_group import command_group

_EPILOGUE = """\
A plan is a JSON file that `hotgrid.data.Plan.write` has written: where samples
are, and the operators that make columns of them. Paths in it are relative to
the working folder.

Examples:
  hotgrid data show plan.json
  hotgrid data bench plan.json --batch 256 --workers 8
"""

# Name: where it is, what it does, examples.
_COMMANDS = MappingProxyType(
    {
        "show": (
            "_show:show",
            "Show the columns and the steps of a plan, and some samples.",
            """\
Examples:
  hotgrid data show plan.json
  hotgrid data show plan.json --samples 3
  hotgrid data show plan.json --json | python -m json.tool
""",
        ),
        "bench": (
            "_bench:bench",
            "Measure how fast a plan makes batches, and what takes the time.",
            """\
Examples:
  hotgrid data bench plan.json
  hotgrid data bench plan.json --batch 256 --workers 8 --seconds 20 --json
""",
        ),
    }
)


def data_group() -> App:
    """The group of commands."""
    return command_group("data", "Show data plans and measure them.", _EPILOGUE, _COMMANDS)
