"""Packages hidden by others of the same name, in a folder of PYTHONPATH or the working one."""

import importlib.util
import os
import sys
from pathlib import Path


def hidden_package(names: tuple[str, ...] = ("numpy", "torch")) -> tuple[str, str] | None:
    """Return what is wrong and how to fix it, if a package comes from such a folder."""
    listed = [part for part in os.environ.get("PYTHONPATH", "").split(os.pathsep) if part]
    for name in names:
        folder = _folder_of(name)
        if folder is None:
            continue
        for part in listed:
            if _same(folder, part):
                problem = f"PYTHONPATH names `{part}`, so {name} comes from there"
                return problem, f"unset PYTHONPATH, or take `{part}` out of it"
        if _same(folder, ".") and not _same(folder, sys.prefix):
            problem = f"{name} comes from the working folder `{folder}`"
            return problem, f"rename the file or folder {name} there, or work in another folder"
    return None


def import_problem(error: Exception) -> str | None:
    """Return why torch does not import, if another package causes the error."""
    hidden = hidden_package() if "torch" not in sys.modules else None
    if hidden is None:
        return None
    return f"torch does not import ({type(error).__name__}: {error}): {'; '.join(hidden)}."


def _folder_of(name: str) -> Path | None:
    """The folder that a package is imported from, which is not the package's own."""
    try:
        spec = importlib.util.find_spec(name)
    except ValueError:  # half imported
        return None
    if spec is None or spec.origin is None:
        return None
    origin = Path(spec.origin)
    return origin.parents[1] if origin.name == "__init__.py" else origin.parent


def _same(folder: Path, other: str) -> bool:
    return folder.resolve() == Path(other).resolve()
