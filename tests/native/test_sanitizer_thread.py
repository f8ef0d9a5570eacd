"""A separate file, so that the two sanitizers can be built in parallel."""

import pytest


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(2400)
def test_the_core_runs_clean(runs_clean):
    runs_clean("thread")
