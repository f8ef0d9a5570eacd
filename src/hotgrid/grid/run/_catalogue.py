"""Models by name: those that come with hotgrid, and those in a user's own file."""

import importlib
import importlib.util
import inspect
import re
import sys
import traceback
from pathlib import Path
from types import ModuleType

from hotgrid.errors import ArgumentError, near
from hotgrid.grid.model import Model

_FAMILIES = ("life", "lbm", "pde", "neural")
# Between `y` and `G` of `TaylorGreen3D`, between `n` and `3`, but not between `3` and `D`.
_WORDS = re.compile(r"(?<=[a-z])(?=[A-Z0-9])|(?<=[A-Z0-9])(?=[A-Z][a-z])")


def models() -> dict[str, type[Model]]:
    """Every model that comes with hotgrid, by the name that `hotgrid run` takes.

    The names are those of the classes in lower case: `GrayScott` is `gray-scott`.

    Example:
        >>> models()["heat"].__name__
        'Heat'
    """
    found: dict[str, type[Model]] = {}
    for family in _FAMILIES:
        name = f"hotgrid.grid.{family}"
        if importlib.util.find_spec(name) is not None:
            found |= {
                _WORDS.sub("-", title).lower(): model
                for title, model in _models_in(importlib.import_module(name)).items()
            }
    return found


def find_model(text: str) -> type[Model]:
    """The model of a name: one of `models()`, or `path/to/file.py:ClassName`.

    A file is imported, which runs it with all rights of this process, as
    `python file.py` would: name only files that you trust.

    Example:
        >>> find_model("heat").__name__
        'Heat'

    Raises:
        ArgumentError: There is no such model, file or class, or the file fails.
    """
    if not isinstance(text, str):
        raise ArgumentError(f"a model is named by a text, such as `heat`, got {text!r}")
    file, colon, name = text.rpartition(":")
    if colon or text.endswith(".py"):
        return _model_in_file(file, name) if colon else _model_in_file(text, "")
    known = models()
    if text not in known:
        raise ArgumentError(
            f"there is no model `{text}`{near(text, known)} (the models are "
            f"{', '.join(known)}; your own is `file.py:ClassName`)"
        )
    return known[text]


def _models_in(module: ModuleType) -> dict[str, type[Model]]:
    """The public models of a module that can be run."""
    return {
        name: value
        for name, value in vars(module).items()
        if inspect.isclass(value)
        and issubclass(value, Model)
        and not name.startswith("_")
        and not inspect.isabstract(value)
    }


def _model_in_file(file: str, name: str) -> type[Model]:
    path = Path(file)
    if not path.is_file():
        raise ArgumentError(f"there is no file `{path}` to take a model from")
    if path.suffix != ".py":
        raise ArgumentError(
            f"`{path}` is not a Python file; a model of your own is `file.py:ClassName`"
        )
    module = imported(path)
    there = _models_in(module)
    if name in there:
        return there[name]
    choice = f"the models in it are {', '.join(there)}" if there else "there is no model in it"
    if not name:
        raise ArgumentError(
            f"name the class of `{path}` to run, as `{path}:ClassName`; {choice}"
        )
    value = getattr(module, name, None)
    if value is None:
        raise ArgumentError(f"`{path}` has no class `{name}`; {choice}{near(name, there)}")
    if inspect.isclass(value) and issubclass(value, Model):
        raise ArgumentError(f"`{name}` in `{path}` cannot be run: it has no `step`")
    raise ArgumentError(f"`{name}` in `{path}` is not a hotgrid.grid.Model; {choice}")


def imported(path: Path) -> ModuleType:
    """Run a Python file and return it as a module.

    Raises:
        ArgumentError: The file fails; the message has the line.
    """
    name = f"hotgrid_file_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ArgumentError(f"`{path}` cannot be imported")
    module = importlib.util.module_from_spec(spec)
    # Dataclasses and torch.compile look a class up in its module by name.
    sys.modules[name] = module
    # As `python file.py` does, so that it can import the files beside it.
    beside = str(path.resolve().parent)
    if beside not in sys.path:
        sys.path.insert(0, beside)
    try:
        spec.loader.exec_module(module)
    except Exception as problem:
        del sys.modules[name]
        raise ArgumentError(
            f"{path}{_line_in(path, problem)}: the file fails with "
            f"{type(problem).__name__}: {problem}"
        ) from problem
    return module


def _line_in(path: Path, problem: Exception) -> str:
    """`:LINE` of the line in a file that raised an exception, or nothing."""
    if isinstance(problem, SyntaxError):
        return f":{problem.lineno}"
    frames = traceback.extract_tb(problem.__traceback__)
    own = path.resolve()
    lines = [frame.lineno for frame in frames if Path(frame.filename).resolve() == own]
    return f":{lines[-1]}" if lines else ""
