"""The native tests, C++ against C++, under the sanitizers of the compiler."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("kind", ["address", "thread"])
def test_the_core_runs_clean(kind, tmp_path):
    program = (
        "import sys; sys.path.insert(0, 'native/tests'); import sanitize, pathlib; "
        f"sanitize.native_tests({kind!r}, pathlib.Path({str(tmp_path)!r}))"
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
    assert done.stdout.count(" passed, 0 failed") == 2
    shutil.rmtree(tmp_path)
