"""A session without a browser, for the tests of the live page."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from .test_session import Desk


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Callable[..., Desk]]:
    made: list[Desk] = []

    def make(model: str, **told: Any) -> Desk:
        made.append(Desk(model, tmp_path / "saved", **told))
        return made[-1]

    yield make
    for each in made:
        each.session.stop()
