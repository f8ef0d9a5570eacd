from collections.abc import Iterator

import pytest

from hotgrid.config import override


@pytest.fixture
def insisting() -> Iterator[None]:
    """A compiler that does not work is an error, not a notice."""
    with override({"compile.enabled": "on"}):
        yield
