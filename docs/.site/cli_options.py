"""Write `docs/reference/cli_options.md`: every option of every command, as `--help` has it."""

from collections.abc import Iterator
from pathlib import Path

from cyclopts import App

from hotgrid.cli._app import build

PAGE = Path(__file__).parents[1] / "reference" / "cli_options.md"
_HEAD = """# cli: every option

What `--help` says of each command, written by `docs/.site/cli_options.py`. Words in capitals
are arguments without a name; every command also takes `-c KEY=VALUE`. The [reference](cli.md)
and the [guide](../guide/cli.md) say more.
"""


def page() -> str:
    """The text of the page."""
    lines = [line for each in _commands(build(), ()) for line in _section(*each)]
    return "\n".join([_HEAD, *lines])


def _commands(app: App, path: tuple[str, ...]) -> Iterator[tuple[str, App]]:
    names = [name for name in app if not name.startswith("-")]
    if path and app.default_command is not None:
        yield " ".join(path), app
    for name in names:
        yield from _commands(app[name], (*path, name))


def _section(name: str, app: App) -> Iterator[str]:
    yield f"## `hotgrid {name}`\n"
    yield f"{app.help}\n"
    yield "| option | meaning |"
    yield "|---|---|"
    for argument in app.assemble_argument_collection(parse_docstring=True):
        if argument.show:
            yield f"| {_names(argument)} | {_escaped(argument.parameter.help or '')} |"
    yield ""


def _names(argument) -> str:
    names = [name for name in argument.names if not name.startswith(("--no-", "--empty-"))]
    if argument.index is not None:
        return f"`{names[0].lstrip('-').upper()}`"
    if argument.field_info.default is True:
        names += argument.parameter.negative
    return ", ".join(f"`{name}`" for name in names)


def _escaped(text: str) -> str:
    """A text for a cell of a table, code in it left as it is but for bars."""
    parts = " ".join(text.replace("|", "\\|").split()).split("`")
    parts[::2] = [part.replace("*", "\\*").replace("<", "&lt;") for part in parts[::2]]
    return "`".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
