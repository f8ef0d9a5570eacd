"""`hotgrid models` and `hotgrid run`: the grid from the command line."""

import inspect
import math
import sys
from collections.abc import Iterable
from json import dumps
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from hotgrid.cli._case_options import case_from, case_options
from hotgrid.cli._terminal import Terminal
from hotgrid.config import Case

if TYPE_CHECKING:
    from hotgrid.grid import Model, Option, Simulation
    from hotgrid.grid.run import RunOutcome


def models(*, json: bool = False) -> None:
    """List every model that comes with hotgrid.

    Args:
        json: Print JSON instead of a table.
    """
    from hotgrid import grid

    console = Terminal(highlight=False)
    known = grid.models()
    if json:
        listed = [
            {
                "name": name,
                "class": f"{model.__module__.partition('._')[0]}.{model.__name__}",
                "summary": _summary(model),
                "ranks": list(_made(model).ranks),
                "size": list(_made(model).size),
                "options": [_plain_option(each) for each in _options(model)],
            }
            for name, model in known.items()
        ]
        console.out(dumps(listed, indent=2, ensure_ascii=False), highlight=False)
        return
    rows: list[tuple[str, Text]] = []
    for name, model in known.items():
        options = "  ".join(map(_shown_option, _options(model)))
        rows.append((name, Text(_summary(model))))
        rows.append(("", Text(f"--set {options}", "dim")))
    _print_rows(console, rows)
    console.print("Run one with `hotgrid run NAME`.", style="dim", markup=False)


@case_options()
def run(
    model: str,
    /,
    *,
    resume: bool = False,
    watch: bool = False,
    json: bool = False,
    **options: Any,
) -> None:
    """Run a model and report its observables and speed.

    Args:
        model: A name from `hotgrid models`, your own `file.py:ClassName`, or a case.toml.
        resume: Continue from the newest checkpoint in --out, on any mesh.
        watch: Draw the run in the terminal instead of a progress bar.
        json: Print one JSON object instead of a table.
        **options: Fields of `Case`.
    """
    case = case_from(model, options)
    # Not earlier: a misspelled option need not wait for torch.
    from hotgrid.grid.run import perform
    from hotgrid.grid.run._perform import start_ranks

    if start_ranks(case, sys.argv[1:], resume=resume):
        return
    outcome = perform(case, resume=resume, watch=watch)
    if not outcome.is_primary:
        return
    console = Terminal(highlight=False)
    if json:
        console.out(dumps(outcome.plain(), indent=2, ensure_ascii=False), highlight=False)
    else:
        _report(console, case, outcome)


def _summary(model: "type[Model]") -> str:
    return (inspect.getdoc(model) or "").partition("\n")[0]


def _made(model: "type[Model]") -> "Model | type[Model]":
    """The model with its defaults, which may set its size; the class if it needs options."""
    from hotgrid import grid

    needs = any(option.needed for option in grid.options_of(model).values())
    return model if needs else model()


def _options(model: "type[Model]") -> "list[Option]":
    """The options of a model for `--set`."""
    from hotgrid import grid

    return [option for option in grid.options_of(model).values() if option.writable]


def _shown_option(option: "Option") -> str:
    if option.needed or option.default is None:
        return option.name
    return f"{option.name}={option.default}"


def _plain_option(option: "Option") -> dict[str, Any]:
    bounds = option.parameter
    plain = option.default is None or isinstance(option.default, bool | int | float | str)
    found: dict[str, Any] = {"name": option.name, "needed": option.needed}
    found["default"] = (
        option.default if plain else None if option.needed else str(option.default)
    )
    if bounds is not None:
        limits = {"low": max(bounds.low, bounds.above), "high": bounds.high}
        found |= {k: v if math.isfinite(v) else None for k, v in limits.items()}
        found |= {"meaning": bounds.meaning, "unit": bounds.unit}
    return found


def _report(console: Terminal, case: Case, outcome: "RunOutcome") -> None:
    simulation, speed = outcome.simulation, outcome.speed
    rows = [("step", f"{simulation.step_count:,}"), ("time", f"{simulation.time:g}")]
    for name, value in outcome.observables.items():
        shown = f"{value:,}" if isinstance(value, int) else f"{value:.8g}"
        rows.append((name.replace("_", " "), shown))
    if not speed.steps:
        rows.append(("speed", "no step was left to make"))
    else:
        rows += [
            ("speed", f"{speed.steps_per_second:,.1f} steps/s, {speed.mlups:,.1f} MLUPS"),
            ("memory", _memory(outcome)),
            ("start-up", f"{speed.startup_seconds:.1f} s, {_startup(simulation)}"),
        ]
    rows += [("wrote", str(path)) for path in outcome.files]
    if outcome.stopped:
        rows.append(("stopped", "by SIGTERM; continue with the same command and --resume"))
    size = "x".join(map(str, simulation.size))
    title = f"{type(simulation.model).__name__} on {size}, {case.dtype} on {simulation.device}"
    if len(simulation.size) < len(simulation.model.size):
        sides = "x".join([size.split("x")[0]] * len(simulation.model.size))
        title += (
            f" ({len(simulation.size)}-D; `--size {sides}` is {len(simulation.model.size)}-D)"
        )
    console.print(Text(title, "bold"))
    _print_rows(console, [(name, Text(text)) for name, text in rows])


def _memory(outcome: "RunOutcome") -> str:
    """The bytes that steps moved, and their share of a copy's if that is known."""
    moved = f"{outcome.speed.bytes_per_second / 1e9:,.2f} GB/s"
    if outcome.copy_bandwidth is None:
        return moved
    limit = outcome.copy_bandwidth / 1e9
    return f"{moved}, {outcome.share:.1%} of the {limit:,.1f} GB/s of a copy"


def _startup(simulation: "Simulation") -> str:
    """A description of the time before the first step."""
    return f"{'compiling and ' if simulation.compiled else ''}the first step"


def _print_rows(console: Terminal, rows: Iterable[tuple[str, Text]]) -> None:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, text in rows:
        table.add_row(Text(name, "bold"), text)
    wide = console.for_tables()
    with wide.capture() as captured:
        wide.print(table)
    lines = captured.get().splitlines()
    console.out("\n".join(line.rstrip() for line in lines), highlight=False)
