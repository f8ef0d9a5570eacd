"""Settings of every test: stricter than production, and the same on every machine."""

import os
from collections import Counter

# Before torch is imported: workers share two cores; a second thread each is in the way.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
from hypothesis import settings

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
