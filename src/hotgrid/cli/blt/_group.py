"""The commands of `hotgrid blt`, as import strings."""

from types import MappingProxyType

from cyclopts import App

from hotgrid.cli._command_group import command_group

_EPILOGUE = """\
An entropy model predicts each byte from those before it. A patch begins where
the byte is hard to predict.

Examples:
  hotgrid blt patches "Daisy, Daisy, give me your answer, do."
  hotgrid blt patches README.md --size 6 --limit 500
"""

# Name: where it is, what it does, examples.
_COMMANDS = MappingProxyType(
    {
        "patches": (
            "_patches:patches",
            "Show the patches of a text or a file, in colours.",
            """\
The colour of a byte says how hard it is to predict, from blue and green to
yellow and red. Without a terminal there is a line for each patch: its start,
length, first and mean entropy in nats, and text.

Examples:
  hotgrid blt patches "To be, or not to be, that is the question."
  hotgrid blt patches src/main.py --segmenter space
  hotgrid blt patches --text src/main.py
  hotgrid blt patches README.md --model model.safetensors --threshold 1.335
  cat README.md | hotgrid blt patches - --json | python -m json.tool
""",
        ),
    }
)


def blt_group() -> App:
    """The group of commands."""
    return command_group("blt", "Split bytes into patches by entropy.", _EPILOGUE, _COMMANDS)
