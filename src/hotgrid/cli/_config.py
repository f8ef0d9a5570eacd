"""`hotgrid config`: show, start and check the settings."""

from json import dumps
from pathlib import Path

from rich.table import Table
from rich.text import Text

from hotgrid import config

from ._terminal import Terminal


def show(*, json: bool = False) -> int:
    """Show every setting, its value and where it came from.

    Example:
        `hotgrid -c autotune.level=full config show`

    Args:
        json: Print JSON instead of a table.
    """
    in_force = config.current()
    console = Terminal(highlight=False)
    if json:
        rows = [
            {
                "key": each.key,
                "value": each.plain(),
                "origin": {"kind": each.origin.kind, "where": str(each.origin)},
                "meaning": each.meaning,
            }
            for each in in_force.settings()
        ]
        file = str(in_force.file) if in_force.file else None
        _print_json(console, {"file": file, "settings": rows})
        return 0
    table = Table(box=None, pad_edge=False)
    for heading in ("setting", "value", "from"):
        table.add_column(heading, overflow="fold")
    for each in in_force.settings():
        changed = "bold" if each.origin.kind != "default" else ""
        value = dumps(each.plain(), ensure_ascii=False)
        table.add_row(each.key, Text(value, changed), Text(str(each.origin), changed))
    console.print(table)
    return 0


def init(path: Path = Path("hotgrid.toml"), *, force: bool = False) -> int:
    """Write a hotgrid.toml in which every setting is explained.

    Example:
        `hotgrid config init`

    Args:
        path: The file to write; by default hotgrid.toml.
        force: Replace the file if it exists.
    """
    config.write_default_toml(path, force=force)
    _say(Terminal(), f"Wrote {path}. Uncomment what you want to change.")
    return 0


def check(file: Path | None = None, *, json: bool = False) -> int:
    """Check hotgrid.toml and the HOTGRID_* variables, and report every problem.

    With a file named, only that file counts and the variables do not.
    Exits with 1 when there is a problem.

    Example:
        `hotgrid config check`

    Args:
        file: The file to check; by default the one that is found upward.
        json: Print JSON instead of lines.
    """
    problems = config.find_problems(file=file, environ={} if file else None)
    console = Terminal(highlight=False)
    if json:
        rows = [
            {
                "where": each.where,
                "source": each.source,
                "line": each.line,
                "column": each.column,
                "message": each.message,
            }
            for each in problems
        ]
        _print_json(console, {"ok": not problems, "problems": rows})
    elif problems:
        for problem in problems:
            _say(console, str(problem))
    else:
        found = file or config.load().file
        _say(console, f"{found} is fine." if found else "There is no hotgrid.toml to check.")
    return 1 if problems else 0


def _print_json(console: Terminal, value: object) -> None:
    console.out(dumps(value, indent=2, ensure_ascii=False), highlight=False)


def _say(console: Terminal, text: str) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)
