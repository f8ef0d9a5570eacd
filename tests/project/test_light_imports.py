"""Importing hotgrid is light: no torch before it is needed."""

import subprocess
import sys

from .packages import FOLDERS

LIGHT = ("errors", "files", "progress", "_native", "contracts", "config", "tokens", "cli")
PROGRAM = """
import importlib, sys
for name in sys.argv[1:]:
    importlib.import_module(name)
    heavy = {"torch", "numpy", "cyclopts", "rich"} & set(sys.modules)
    if heavy:
        sys.exit(f"importing {name} loads {sorted(heavy)}; import them inside functions")
"""

WHAT_COMPILES = """
import sys
import hotgrid.blt, hotgrid.chat, hotgrid.grid, hotgrid.vision
heavy = {"sympy", "torch._dynamo", "torch.distributed.fsdp"} & set(sys.modules)
if heavy:
    sys.exit(f"importing packages loads {sorted(heavy)}; import them inside functions")
"""


def test_light_packages_load_neither_tensors_nor_the_command_line_parser():
    packages = ["hotgrid", *(f"hotgrid.{package}" for package in LIGHT if package in FOLDERS)]
    command = [sys.executable, "-c", PROGRAM, *packages]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_no_package_loads_the_compiler():
    command = [sys.executable, "-c", WHAT_COMPILES]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
