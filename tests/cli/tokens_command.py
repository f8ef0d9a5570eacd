"""What the tests of `hotgrid tokens` share."""

import io
import sys
from collections.abc import Iterator

import pytest
import tiktoken

from hotgrid import tokens

from ..tokens.vocabularies import files  # noqa: TID252  tests are not a package
from .command import run

TEXT = "Hello  world, 中文 👍\n\n\tdéjà vu<|endoftext|> 12345\r\n"


@pytest.fixture(autouse=True)
def vocabularies(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    folder = tmp_path_factory.getbasetemp() / "vocabularies"
    if not folder.is_dir():
        folder.mkdir()
        for file, data in files().items():
            (folder / file.cache_name).write_bytes(data)
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(folder))
    yield
    tokens._registry._kept.cache_clear()


def expected(text: str, name: str = "cl100k_base") -> list[int]:
    return tiktoken.get_encoding(name).encode_ordinary(text)


def hotgrid(*arguments: str, encoding: str = "cl100k_base") -> int:
    return run(["tokens", *arguments, "--encoding", encoding])


def feed(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data), "utf-8"))
