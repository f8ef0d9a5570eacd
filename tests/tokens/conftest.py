"""A cache as tiktoken fills it, for tiktoken and for hotgrid."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from .vocabularies import files


@pytest.fixture(scope="session", autouse=True)
def vocabulary_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("vocabularies")
    for file, data in files().items():
        (folder / file.cache_name).write_bytes(data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIKTOKEN_CACHE_DIR", str(folder))
        patch.delenv("HOTGRID_VOCAB_DIR", raising=False)
        yield folder
