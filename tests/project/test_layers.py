"""Imports go only downward, and the layers are those of the design."""

import subprocess
import sys
import tomllib

from .packages import FOLDERS, LAYERS_OF_DESIGN, ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
LAYERS = next(c for c in PROJECT["tool"]["importlinter"]["contracts"] if c["type"] == "layers")


def written(layer: tuple[str, ...]) -> str:
    """A layer as import-linter writes it: packages that are not built yet in parentheses."""
    return " | ".join(each if each in FOLDERS else f"({each})" for each in layer)


def test_the_linter_knows_exactly_the_layers_of_the_design():
    assert LAYERS["containers"] == ["hotgrid"]
    assert LAYERS["layers"] == [written(layer) for layer in LAYERS_OF_DESIGN], (
        "[tool.importlinter] in pyproject.toml must have the layers of "
        "tests/project/packages.py, with packages in parentheses as long as they have no folder"
    )


def test_every_folder_of_the_package_is_in_a_layer():
    homeless = set(FOLDERS) - {package for layer in LAYERS_OF_DESIGN for package in layer}
    assert not homeless, f"put {homeless} into tests/project/packages.py and pyproject.toml"


def test_imports_go_only_downward():
    program = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    done = subprocess.run(
        [sys.executable, "-c", program, "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
