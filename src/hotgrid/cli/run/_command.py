"""`hotgrid models` and `hotgrid run`: the grid from the command line."""

import inspect
import math
from collections.abc import Iterable
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import CycloptsError, Parameter
from rich.table import Table
from rich.text import Text

from hotgrid.cli._terminal import Terminal
from hotgrid.cli._whole_number import WholeNumber

from ._case import Case, Dtype, case_of

if TYPE_CHECKING:
    from hotgrid.grid import Model, Option, Simulation

    from ._outcome import Outcome


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
                "class": f"{model.__module__.rpartition('.')[0]}.{model.__name__}",
                "summary": _summary(model),
                "ranks": list(model.ranks),
                "size": list(model.size),
                "options": [_plain_option(each) for each in _options(model)],
            }
            for name, model in known.items()
        ]
        console.out(dumps(listed, indent=2, ensure_ascii=False), highlight=False)
        return
    rows: list[tuple[str, Text]] = []
    for name, model in known.items():
        told = "  ".join(map(_shown_option, _options(model)))
        rows.append((name, Text(_summary(model))))
        rows.append(("", Text(f"--set {told}", "dim")))
    _print_rows(console, rows)
    console.print("Run one with `hotgrid run NAME`.", style="dim", markup=False)


def run(
    model: str,
    /,
    *,
    size: str | None = None,
    steps: WholeNumber = None,
    time: float | None = None,
    device: str | None = None,
    dtype: Dtype | None = None,
    storage: Dtype | None = None,
    set_: Annotated[tuple[str, ...], Parameter(name="--set", metavar="NAME=VALUE")] = (),
    seed: WholeNumber = None,
    out: Path | None = None,
    view: str | None = None,
    record: Path | None = None,
    export: str | None = None,
    every: WholeNumber = None,
    mesh: str | None = None,
    depth: WholeNumber = None,
    overlap: bool | None = None,
    trace: Path | None = None,
    checkpoint_every: WholeNumber = None,
    keep: WholeNumber = None,
    keep_every: WholeNumber = None,
    restarts: WholeNumber = None,
    resume: bool = False,
    json: bool = False,
) -> None:
    """Run a model and say what came out and how fast.

    Args:
        model: A name from `hotgrid models`, your own `file.py:ClassName`, or a case.toml.
        size: The grid, such as 400x1600; by default the model's own.
        steps: How many steps, counted from the start also with --resume; by default 1000.
        time: For how long instead, in the units of the model.
        device: Where to run, such as cpu or cuda; by default the GPU if there is one.
        dtype: The type of arithmetic; by default float32.
        storage: The type in which fields are kept; by default that of arithmetic.
        set_: One option of the model; repeatable.
        seed: Seeds the initial state; by default 0.
        out: The folder for checkpoints and for what --export names.
        view: What to draw; by default the model's own choice.
        record: Film the run into this .mp4 or .gif; a bare name lies in --out.
        export: Write at the end any of npz, csv, png, vti, separated by commas.
        every: Steps between frames, rows and checkpoints; by default 200 rows, and one
            checkpoint at the end.
        mesh: Cut the grid over ranks, such as 2x2; they are started here unless torchrun did.
        depth: With --mesh, steps between two exchanges; by default what the planner advises.
        overlap: With --mesh, let messages travel while the interior is computed; by default
            on GPUs.
        trace: With --mesh, write what every rank did when, for chrome://tracing.
        checkpoint_every: Steps between checkpoints, if other than --every.
        keep: How many of the newest checkpoints stay; by default 3.
        keep_every: Checkpoints of steps that are a multiple of this stay as well.
        restarts: How often the ranks of --mesh are started again after one was lost; by
            default 3 where checkpoints are made on the way.
        resume: Go on from the newest checkpoint in --out, on any mesh.
        json: Print one JSON object instead of a table.
    """
    options = {
        "size": size,
        "steps": steps,
        "time": time,
        "device": device,
        "dtype": dtype,
        "storage": storage,
        "set": _pairs(set_) or None,
        "seed": seed,
        "out": out,
        "view": view,
        "record": record,
        "export": export,
        "every": every,
        "mesh": mesh,
        "depth": depth,
        "overlap": overlap,
        "trace": trace,
        "checkpoint_every": checkpoint_every,
        "keep": keep,
        "keep_every": keep_every,
        "restarts": restarts,
    }
    case = case_of(model, options)
    # Not before: a misspelled option need not wait for torch.
    from ._perform import perform, start_ranks

    if start_ranks(case, resume=resume):
        return
    outcome = perform(case, resume=resume)
    if not outcome.spoken:
        return
    console = Terminal(highlight=False)
    if json:
        console.out(dumps(outcome.plain(), indent=2, ensure_ascii=False), highlight=False)
    else:
        _report(console, case, outcome)


def _pairs(texts: Iterable[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name.strip() and equals):
            raise CycloptsError(
                msg=f"`--set {text}` must be NAME=VALUE, such as `--set rate=0.1`; "
                "`hotgrid models` lists the names."
            )
        found[name.strip()] = value.strip()
    return found


def _summary(model: "type[Model]") -> str:
    return (inspect.getdoc(model) or "").partition("\n")[0]


def _options(model: "type[Model]") -> "list[Option]":
    """What `--set` can tell a model."""
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


def _report(console: Terminal, case: Case, outcome: "Outcome") -> None:
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
        rows.append(("stopped", "as SIGTERM asked; the same command with --resume goes on"))
    size = "x".join(map(str, simulation.size))
    title = f"{type(simulation.model).__name__} on {size}, {case.dtype} on {simulation.device}"
    if len(simulation.size) < len(simulation.model.size):
        sides = "x".join([size.split("x")[0]] * len(simulation.model.size))
        title += (
            f" ({len(simulation.size)}-D; `--size {sides}` is {len(simulation.model.size)}-D)"
        )
    console.print(Text(title, "bold"))
    _print_rows(console, [(name, Text(text)) for name, text in rows])


def _memory(outcome: "Outcome") -> str:
    """The bytes that steps moved, and their share of a copy's if that is known."""
    moved = f"{outcome.speed.bytes_per_second / 1e9:,.2f} GB/s"
    if outcome.copy_bandwidth is None:
        return moved
    limit = outcome.copy_bandwidth / 1e9
    return f"{moved}, {outcome.share:.1%} of the {limit:,.1f} GB/s of a copy"


def _startup(simulation: "Simulation") -> str:
    """What the time before the first step was spent on."""
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
