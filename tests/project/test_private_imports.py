"""A package imports from another package what that package exports, never a private module."""

import ast
from pathlib import Path

import pytest

from .packages import FOLDERS, SOURCE

# One module for the whole of hotgrid: see test_torch_private.py.
SHARED = "hotgrid.tensors._torch_private"
# The commands of hotgrid also call code of its packages that nobody else should rely on.
EXCEPT = {"cli"}


def imported(path: Path) -> list[tuple[int, str]]:
    """Every module or name of hotgrid that a file imports by its full name, and the line."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [(node.lineno, each.name) for each in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found += [(node.lineno, f"{node.module}.{each.name}") for each in node.names]
    return [each for each in found if each[1].startswith("hotgrid.")]


def private_of_others(path: Path, package: str) -> list[str]:
    found = []
    for line, name in imported(path):
        of, *inner = name.split(".")[1:]
        private = any(part.startswith("_") and not part.endswith("__") for part in inner)
        if of != package and private and not name.startswith(SHARED):
            found.append(f"{path.relative_to(SOURCE)}:{line} {name}")
    return found


@pytest.mark.parametrize("package", sorted({*FOLDERS} - EXCEPT))
def test_packages_import_what_others_export(package: str):
    paths = sorted((SOURCE / package).rglob("*.py"))
    found = [each for path in paths for each in private_of_others(path, package)]
    assert not found, f"export what is needed from the package's __init__: {found}"


def test_a_private_import_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(f"{__name__}.SOURCE", tmp_path)
    path = tmp_path / "module.py"
    path.write_text(
        "import hotgrid.data._plan\n"
        "from hotgrid import data\n"
        "from hotgrid._version import __version__\n"
        "def f():\n"
        "    from hotgrid.kernels import _topk\n"
        "    from hotgrid.train._loop._step import Step\n"
    )
    assert private_of_others(path, "train") == [
        "module.py:1 hotgrid.data._plan",
        "module.py:5 hotgrid.kernels._topk",
    ]
