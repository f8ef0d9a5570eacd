"""The native core may be absent: every package that can do without it still works."""

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from .packages import PACKAGES, SOURCE

PROGRAM = """
import importlib, json, sys
paths, packages = json.loads(sys.argv[1])
sys.path[:0] = paths
for package in packages:
    importlib.import_module("hotgrid." + package)

from hotgrid import _native, config, contracts, errors, kernels
try:
    _native.core()
    refusal = ""
except errors.MissingPartError as error:
    refusal = str(error)
patches = contracts.Contract("batch (rows window) channels")
settings = config.load(flags={"autotune.level": "full"})
copy = kernels.copy_bandwidth("cpu", size_bytes=2**16, repeats=1)
print(json.dumps({
    "available": _native.available(),
    "missing": _native.missing(),
    "refusal": refusal,
    "rows": patches.check((2, 12, 3), {"window": 4})["rows"],
    "mismatch": patches.try_check((2, 13, 3), {"window": 4}),
    "level": settings.autotune.level,
    "copied with": copy.method,
}))
"""
# No `site` means no editable install, so only the Python sources are found.
SOURCES_ONLY = [
    str(SOURCE.parent),
    sysconfig.get_path("purelib"),
    sysconfig.get_path("platlib"),
]


@pytest.mark.parametrize(
    ("options", "paths", "variables", "reason"),
    [
        (["-I", "-S"], SOURCES_ONLY, {}, "it is not built here"),
        pytest.param(
            [],
            [],
            {"HOTGRID_NATIVE": "off"},
            "HOTGRID_NATIVE=off switches it off",
            marks=pytest.mark.long,
        ),
    ],
    ids=["not built", "switched off"],
)
def test_the_packages_work_without_the_native_core(
    options: list[str], paths: list[str], variables: dict[str, str], reason: str, tmp_path: Path
):
    clean = {name: v for name, v in os.environ.items() if not name.startswith("HOTGRID_")}
    done = subprocess.run(
        [sys.executable, *options, "-c", PROGRAM, json.dumps([paths, PACKAGES])],
        cwd=tmp_path,
        env={**clean, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert reason in found.pop("missing")
    assert reason in found.pop("refusal")
    assert found == {
        "available": False,
        "rows": 3,
        "mismatch": None,
        "level": "full",
        "copied with": "torch",
    }
