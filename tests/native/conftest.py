"""The native tests, C++ against C++, under a sanitizer of the compiler."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def runs_clean(tmp_path):
    """Asserts that the core's own tests find nothing under the sanitizer of that name."""

    def run(kind: str) -> None:
        # Two sanitizers are built side by side, each with half of the machine.
        jobs = str(max(1, (os.cpu_count() or 2) // 2))
        program = (
            "import sys; sys.path.insert(0, 'native/tests'); import sanitize, pathlib; "
            f"sanitize.native_tests({kind!r}, pathlib.Path({str(tmp_path)!r}), {jobs!r})"
        )
        tools = str(Path(sys.executable).parent)
        done = subprocess.run(
            [sys.executable, "-c", program],
            cwd=ROOT,
            env={**os.environ, "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stdout.count(" passed, 0 failed") == (1 if kind == "thread" else 2)
        shutil.rmtree(tmp_path)

    return run
