"""Groups of commands from tables: nothing of a command is imported before it runs."""

from collections.abc import Mapping

from cyclopts import App


def command_group(
    name: str, summary: str, epilogue: str, commands: Mapping[str, tuple[str, str, str]]
) -> App:
    """Return the group `hotgrid NAME`.

    Args:
        name: Its name, and that of its folder here.
        summary: Its summary.
        epilogue: The end of its help.
        commands: By name, the place in the folder, the summary, and the end of the help.
    """
    group = App(name=name, help=summary, help_epilogue=epilogue)
    for each, (place, what, end) in commands.items():
        group.command(f"hotgrid.cli.{name}.{place}", name=each, help=what, help_epilogue=end)
    return group
