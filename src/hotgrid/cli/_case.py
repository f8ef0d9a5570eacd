"""What one run is told: options of the command line, or a case file with the same names."""

import math
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from hotgrid.errors import ArgumentError, near

PATTERNS = (".rle", ".cells")
Dtype = Literal["float64", "float32", "float16", "bfloat16"]


@dataclass(frozen=True, kw_only=True)
class Case:
    """Everything about one run. The names are those of the options and of a case file."""

    model: str
    size: tuple[int, ...] | None = None
    steps: int | None = None
    time: float | None = None
    device: str | None = None
    dtype: Dtype = "float32"
    storage: Dtype | None = None
    set: Mapping[str, object] = field(default_factory=dict)
    seed: int = 0
    out: Path | None = None
    view: str | None = None
    record: Path | None = None
    export: tuple[str, ...] = ()
    every: int | None = None
    mesh: str | None = None
    depth: int | None = None
    overlap: bool | None = None
    trace: Path | None = None
    checkpoint_every: int | None = None
    keep: int | None = None
    keep_every: int | None = None
    restarts: int | None = None

    @property
    def checkpoint_period(self) -> int | None:
        """Steps between two checkpoints; None for one at the end."""
        return self.checkpoint_every or self.every


def case_of(model: str, options: Mapping[str, object]) -> Case:
    """The case of a command line; `model` may be a case file, over which options win.

    Raises:
        ArgumentError: A name is unknown or a value is not of its kind.
    """
    told = {name: value for name, value in options.items() if value is not None}
    values = _checked(told, lambda name: f"`{_option(name)}`")
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
        raise ArgumentError(f'`{path}` does not say what to run, such as model = "heat"')
    return {**values, **_placed(values, path.parent)}


def _placed(values: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The paths of a case file, from its folder on."""
    found: dict[str, Any] = {}
    if "out" in values:
        found["out"] = folder / values["out"]
    # A film without a folder lies in `out`.
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
    if isinstance(value, str) and Path(value).suffix in PATTERNS:
        return str(folder / value)
    return value


def _checked(values: Mapping[str, object], where: Callable[[str], str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in values.items():
        if name not in _READERS:
            raise ArgumentError(
                f"{where(name)} is an unknown key{near(name, _READERS)} "
                f"(the keys are {', '.join(_READERS)})"
            )
        expected, read = _READERS[name]
        try:
            found[name] = read(value)
        except ValueError:
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
    """The line on which a key of the first level stands: `name = ...` or `[name]`."""
    place = re.search(rf"^[ \t]*\[?[ \t]*[\"']?{re.escape(name)}\b", text, re.MULTILINE)
    return text.count("\n", 0, place.start()) + 1 if place else 1


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


_A_DTYPE = f"one of {', '.join(get_args(Dtype))}"
_READERS: dict[str, tuple[str, Callable[[Any], object]]] = {
    "model": ("the name of a model or `file.py:ClassName`", _text),
    "size": ("whole numbers of at least 1, such as 400x1600", _size),
    "steps": ("a whole number of at least 0", _whole(0)),
    "time": ("a number of at least 0", _duration),
    "device": ("a device, such as cpu or cuda", _text),
    "dtype": (_A_DTYPE, _dtype),
    "storage": (_A_DTYPE, _dtype),
    "set": ("a table of options of the model, such as [set]", _table),
    "seed": ("a whole number of at least 0", _whole(0)),
    "out": ("a folder", _path),
    "view": ("the name of a view", _text),
    "record": ("a film, such as film.mp4", _path),
    "export": ("formats, such as npz,png", _words),
    "every": ("a whole number of at least 1", _whole(1)),
    "mesh": ("ranks along each axis, such as 2x2", _text),
    "depth": ("a whole number of at least 1", _whole(1)),
    "overlap": ("true or false", _flag),
    "trace": ("a file, such as trace.json", _path),
    "checkpoint_every": ("a whole number of at least 1", _whole(1)),
    "keep": ("a whole number of at least 1", _whole(1)),
    "keep_every": ("a whole number of at least 1", _whole(1)),
    "restarts": ("a whole number of at least 0", _whole(0)),
}
