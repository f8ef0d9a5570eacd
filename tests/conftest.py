"""Settings of every test: stricter than production, and the same on every machine."""

import gc
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable

# Before torch is imported: workers share two cores; a second thread each is in the way.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
from hypothesis import settings

# Modules and tests live to the end: looking through them for garbage again and again is most of
# the work of the collector.
gc.disable()


def _wait_for_no_disk(descriptor: int) -> None:
    os.fstat(descriptor)  # refuses what `fsync` refuses


# No test cuts the power: waiting for the disk, thousands of times, would show nothing. What is
# called, and when, is tested in tests/files. Processes that tests start do wait.
os.fsync = _wait_for_no_disk
os.sync = lambda: None

# The same examples in every run, so that a change is judged by what it changes. A search for
# new ones: `HOTGRID_EXAMPLES=1000 make test`.
_EXAMPLES = os.environ.get("HOTGRID_EXAMPLES")
settings.register_profile(
    "hotgrid",
    deadline=None,
    max_examples=int(_EXAMPLES or "100"),
    derandomize=_EXAMPLES is None,
)
settings.load_profile("hotgrid")


@pytest.fixture
def run_apart(request: pytest.FixtureRequest) -> Callable[..., str]:
    """Runs a script beside the test in a process of its own, and returns what it printed.

    How Triton works is decided when it is imported, by variables of the environment.
    """

    def run(script: str, *arguments: str, **environment: str) -> str:
        done = subprocess.run(
            [sys.executable, str(request.path.with_name(script)), *arguments],
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr[-3000:]
        return done.stdout

    return run


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files of slow tests first, then by their number of tests: none is left for the end.

    `make test` hands out whole files in this order. The sanitizers lead: they come in files
    of one test each, so every worker begins with one.
    """
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    sizes = Counter(item.path for item in items)
    items.sort(
        key=lambda item: (
            item.path not in slow,
            "sanitizer" not in item.path.name,
            -sizes[item.path],
            item.path,
        )
    )


def pytest_collection_finish() -> None:
    """Look for garbage again, among what tests make."""
    gc.freeze()
    gc.set_threshold(10_000)
    gc.enable()


def pytest_sessionfinish() -> None:
    """What is left could not be finalised later, when modules are gone."""
    gc.collect()
