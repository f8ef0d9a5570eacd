"""Imports go only downward, and the floors are those of the design."""

import subprocess
import sys
import tomllib

from .packages import FLOORS, FOLDERS, ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
LAYERS = next(c for c in PROJECT["tool"]["importlinter"]["contracts"] if c["type"] == "layers")


def layer(floor: tuple[str, ...]) -> str:
    """A floor as import-linter writes it: rooms that are not built yet in parentheses."""
    return " | ".join(room if room in FOLDERS else f"({room})" for room in floor)


def test_the_linter_knows_exactly_the_floors_of_the_design():
    assert LAYERS["containers"] == ["hotgrid"]
    assert LAYERS["layers"] == [layer(floor) for floor in FLOORS], (
        "[tool.importlinter] in pyproject.toml must have the layers of tests/project/packages.py, "
        "with rooms in parentheses as long as they have no folder"
    )


def test_every_folder_of_the_package_is_a_room_on_a_floor():
    homeless = set(FOLDERS) - {room for floor in FLOORS for room in floor}
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
