"""The options of one run: from the command line, or from a case file with the same names."""

# ruff: noqa: RUF009  `_field` makes fields of the dataclass

import math
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, get_args

from hotgrid.errors import ArgumentError, near

CASE_PATTERNS = (".rle", ".cells")
"""Suffixes of files of cells, which an option of a model may name."""
Dtype = Literal["float64", "float32", "float16", "bfloat16"]
"""The floating types that a run can have, by name."""


def _text(value: object) -> str:
    if isinstance(value, str) and value:
        return value
    raise ValueError


def _whole(low: int) -> Callable[[object], int]:
    def read(value: object) -> int:
        if type(value) is int and value >= low:
            return value
        raise ValueError

    return read


def _flag(value: object) -> bool:
    if isinstance(value, bool):
        return value
    raise ValueError


def _duration(value: object) -> float:
    if type(value) is int or type(value) is float:
        duration = float(value)
        if math.isfinite(duration) and duration >= 0:
            return duration
    raise ValueError


def _size(value: object) -> tuple[int, ...]:
    parts = value.split("x") if isinstance(value, str) else value
    if not isinstance(parts, list) or not parts or any(isinstance(n, bool) for n in parts):
        raise ValueError
    return tuple(_whole(1)(int(n) if isinstance(n, str) else n) for n in parts)


def _dtype(value: object) -> object:
    if value in get_args(Dtype):
        return value
    raise ValueError


def _words(value: object) -> tuple[str, ...]:
    parts = value.split(",") if isinstance(value, str) else value
    if not isinstance(parts, list) or not all(isinstance(word, str) for word in parts):
        raise ValueError
    return tuple(word.strip() for word in parts)


def _table(value: object) -> dict[str, object]:
    if isinstance(value, dict):
        return value
    raise ValueError


def _path(value: object) -> Path:
    return value if isinstance(value, Path) else Path(_text(value))


def _field(expected: str, read: Callable[[Any], object], meaning: str, **default: Any) -> Any:
    """A field of `Case`: its rule, how it is read, and its line of `--help`."""
    known = default or {"default": None}
    return field(metadata={"expected": expected, "read": read, "meaning": meaning}, **known)


_A_DTYPE = f"one of {', '.join(get_args(Dtype))}"


@dataclass(frozen=True, kw_only=True)
class Case:
    """Everything about one run.

    This is the one declaration of the options of `hotgrid run` and of the keys of a case file:
    name, type, default, what is expected, how it is read, and the line of `--help`.
    """

    model: str = _field(
        "the name of a model or `file.py:ClassName`",
        _text,
        "A name from `hotgrid models`, your own `file.py:ClassName`, or a case.toml.",
    )
    size: tuple[int, ...] | None = _field(
        "whole numbers of at least 1, such as 400x1600",
        _size,
        "The grid, such as 400x1600; by default the model's own.",
    )
    steps: int | None = _field(
        "a whole number of at least 0",
        _whole(0),
        "How many steps, counted from the start also with --resume; by default 1000.",
    )
    time: float | None = _field(
        "a number of at least 0",
        _duration,
        "For how long instead, in the units of the model.",
    )
    device: str | None = _field(
        "a device, such as cpu or cuda",
        _text,
        "Where to run, such as cpu or cuda; by default the GPU if there is one.",
    )
    dtype: Dtype = _field(
        _A_DTYPE,
        _dtype,
        "The type of arithmetic; by default float32.",
        default="float32",
    )
    storage: Dtype | None = _field(
        _A_DTYPE,
        _dtype,
        "The type in which fields are kept; by default that of arithmetic.",
    )
    set: Mapping[str, object] = _field(
        "a table of options of the model, such as [set]",
        _table,
        "One option of the model; repeatable.",
        default_factory=dict,
    )
    seed: int = _field(
        "a whole number of at least 0",
        _whole(0),
        "Seeds the initial state; by default 0.",
        default=0,
    )
    out: Path | None = _field(
        "a folder",
        _path,
        "The folder for checkpoints and for what --export names.",
    )
    view: str | None = _field(
        "the name of a view",
        _text,
        "What to draw; by default the model's own choice.",
    )
    record: Path | None = _field(
        "a film, such as film.mp4",
        _path,
        "Film the run into this .mp4 or .gif; a bare name goes into --out.",
    )
    export: tuple[str, ...] = _field(
        "formats, such as npz,png",
        _words,
        "Write at the end any of npz, csv, png, vti, separated by commas; vti with --every on "
        "the way, too.",
        default=(),
    )
    every: int | None = _field(
        "a whole number of at least 1",
        _whole(1),
        "Steps between frames, rows, .vti files and checkpoints; by default 200 rows, and one "
        "checkpoint at the end.",
    )
    mesh: str | None = _field(
        "ranks along each axis, such as 2x2",
        _text,
        "Split the grid over ranks, such as 2x2; they are started here unless torchrun did.",
    )
    depth: int | None = _field(
        "a whole number of at least 1",
        _whole(1),
        "With --mesh, steps between two exchanges; by default chosen by the planner.",
    )
    overlap: bool | None = _field(
        "true or false",
        _flag,
        "With --mesh, send messages while the interior is computed; by default on GPUs.",
    )
    trace: Path | None = _field(
        "a file, such as trace.json",
        _path,
        "With --mesh, write a timeline of all ranks, for chrome://tracing.",
    )
    checkpoint_every: int | None = _field(
        "a whole number of at least 1",
        _whole(1),
        "Steps between checkpoints, if different from --every.",
    )
    keep: int | None = _field(
        "a whole number of at least 1",
        _whole(1),
        "How many of the newest checkpoints are kept; by default 3.",
    )
    keep_every: int | None = _field(
        "a whole number of at least 1",
        _whole(1),
        "Also keep checkpoints of steps that are a multiple of this.",
    )
    restarts: int | None = _field(
        "a whole number of at least 0",
        _whole(0),
        "How often the ranks of --mesh are restarted after one was lost; by default 3 "
        "if checkpoints are written during the run.",
    )

    @property
    def checkpoint_period(self) -> int | None:
        """Steps between two checkpoints; None for one at the end."""
        return self.checkpoint_every or self.every


def case_of(model: str, options: Mapping[str, object]) -> Case:
    """The case of a command line; `model` may be a case file, over which options win.

    Raises:
        ArgumentError: A name is unknown or a value is not of its kind.
    """
    given = {name: value for name, value in options.items() if value is not None}
    values = _checked(given, lambda name: f"`{_option(name)}`")
    if not model.endswith(".toml"):
        return _agreed({"model": model, **values})
    base = read_case(Path(model))
    if "steps" in values or "time" in values:
        base = {name: value for name, value in base.items() if name not in ("steps", "time")}
    settings = {**base.get("set", {}), **values.get("set", {})}
    return _agreed({**base, **values, "set": settings})


def read_case(path: Path) -> dict[str, Any]:
    """The values of a case file; its relative paths start at its folder.

    Raises:
        ArgumentError: The file cannot be read, or a name or value in it is wrong.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
        table = tomllib.loads(text)
    except OSError as problem:
        raise ArgumentError(f"cannot read `{path}`: {problem.strerror}") from None
    except UnicodeDecodeError:
        raise ArgumentError(f"`{path}` is not UTF-8; save it as UTF-8") from None
    except tomllib.TOMLDecodeError as problem:
        raise ArgumentError(f"`{path}` is not valid TOML: {problem}") from None
    values = _checked(table, lambda name: f"{path}:{_line_of(text, name)}: `{name}`")
    if "model" not in values:
        raise ArgumentError(f'`{path}` needs a model, such as model = "heat"')
    return {**values, **_placed(values, path.parent)}


def _placed(values: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The paths of a case file, from its folder on."""
    found: dict[str, Any] = {}
    if "out" in values:
        found["out"] = folder / values["out"]
    # A film without a folder goes into `out`.
    if "record" in values and not ("out" in values and values["record"].parent == Path()):
        found["record"] = folder / values["record"]
    if "trace" in values:
        found["trace"] = folder / values["trace"]
    if "set" in values:
        found["set"] = {name: _beside(folder, value) for name, value in values["set"].items()}
    if ":" in values["model"] or values["model"].endswith(".py"):
        found["model"] = str(folder / values["model"])
    return found


def _beside(folder: Path, value: object) -> object:
    """An option of a model; where it names a file of cells, from the folder on."""
    if isinstance(value, str) and Path(value).suffix in CASE_PATTERNS:
        return str(folder / value)
    return value


def _checked(values: Mapping[str, object], where: Callable[[str], str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in values.items():
        if name not in _FIELDS:
            raise ArgumentError(
                f"{where(name)} is an unknown key{near(name, _FIELDS)} "
                f"(the keys are {', '.join(_FIELDS)})"
            )
        try:
            found[name] = _FIELDS[name]["read"](value)
        except ValueError:
            expected = _FIELDS[name]["expected"]
            raise ArgumentError(f"{where(name)} must be {expected}, got {value!r}") from None
    return found


def _agreed(values: dict[str, Any]) -> Case:
    case = Case(**values)
    if case.steps is not None and case.time is not None:
        raise ArgumentError("give `--steps` or `--time`, not both")
    if case.mesh is None:
        for name in ("overlap", "trace"):
            if getattr(case, name) is not None:
                raise ArgumentError(f"`{_option(name)}` needs `--mesh`, such as `--mesh 2x2`")
    for name in ("export", "checkpoint_every", "keep", "keep_every"):
        if getattr(case, name) and case.out is None:
            raise ArgumentError(f"`{_option(name)}` needs `--out DIR` to know where to write")
    return case


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _line_of(text: str, name: str) -> int:
    """The line of a top-level key: `name = ...` or `[name]`."""
    place = re.search(rf"^[ \t]*\[?[ \t]*[\"']?{re.escape(name)}\b", text, re.MULTILINE)
    return text.count("\n", 0, place.start()) + 1 if place else 1


_FIELDS = {each.name: each.metadata for each in fields(Case)}
