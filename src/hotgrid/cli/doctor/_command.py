"""`hotgrid doctor`: the diagnosis on a screen or as JSON."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from itertools import groupby
from json import dumps

from rich.table import Table
from rich.text import Text

from hotgrid.cli._terminal import Terminal

from ._diagnosis import diagnose
from ._finding import Finding

_STYLES = {"ok": "green", "note": "yellow", "broken": "bold red"}


def doctor(*, json: bool = False, quick: bool = False) -> int:
    """Report what this machine has, what is missing and what is broken.

    Args:
        json: Print one JSON object instead of a table.
        quick: Do not measure the bandwidth of the devices.
    """
    with _progress() as status:
        findings = diagnose(quick=quick, starting=status)
    broken = any(finding.state == "broken" for finding in findings)
    console = Terminal()
    if json:
        report = {"ok": not broken, "findings": [asdict(finding) for finding in findings]}
        text = dumps(report, indent=2)
    else:
        text = _rendered(console, findings)
    console.out(text, highlight=False)
    return 1 if broken else 0


@contextmanager
def _progress() -> Iterator[Callable[[str], None]]:
    """A spinner that names the section being checked; nothing without a terminal."""
    console = Terminal(stderr=True)
    if not console.is_terminal:
        yield lambda section: None
        return
    with console.status("") as status:
        yield lambda section: status.update(f"Checking {section} ...")


def _rendered(terminal: Terminal, findings: Sequence[Finding]) -> str:
    """The report as text, with the colours that the terminal has."""
    console = terminal.for_tables()
    with console.capture() as captured:
        for section, members in groupby(findings, key=lambda finding: finding.section):
            console.print(Text(section, "bold"), _table(list(members)), sep="\n")
        console.print(_verdict(findings))
    # A table fills its last column with blanks, which are not useful in a file.
    return "\n".join(line.rstrip() for line in captured.get().splitlines())


def _table(findings: Sequence[Finding]) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(width=len("  broken"))
    table.add_column(min_width=13, no_wrap=True)
    table.add_column(overflow="fold")
    widest = max((len(each.value) for each in findings if each.detail), default=0)
    for each in findings:
        state = Text(f"  {each.state}", _STYLES[each.state])
        if each.state == "ok":
            value = Text.assemble(each.value.ljust(widest), "  ", (each.detail, "dim"))
            table.add_row(state, each.name, value)
            continue
        table.add_row(state, each.name, Text(each.value))
        table.add_row("", "", Text(each.detail, "dim"))
        table.add_row("", "", Text.assemble(("to do: ", "bold"), each.way_out))
    table.add_row()
    return table


def _verdict(findings: Sequence[Finding]) -> Text:
    counts = Counter(finding.state for finding in findings)
    verdict = "Something is broken" if counts["broken"] else "Nothing is broken"
    style = _STYLES["broken" if counts["broken"] else "ok"]
    rest = f": {counts['ok']} ok, {counts['note']} noted, {counts['broken']} broken."
    return Text.assemble((verdict, style), rest)
