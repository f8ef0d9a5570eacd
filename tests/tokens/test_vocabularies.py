"""Where files of ranks are searched, and errors for wrong ones."""

import re
import stat
from pathlib import Path

import pytest

from hotgrid.errors import DamagedError, MissingPartError
from hotgrid.tokens import get_encoding
from hotgrid.tokens._files import _vocabularies, read_vocabulary
from hotgrid.tokens._files._vocabularies import RankFile

from .vocabularies import _FILES, _GPT2_MERGES, files

GOOD = b"aGk= 0\n"
FILE = RankFile(
    "tiny.tiktoken",
    "https://example.org/tiny.tiktoken",
    "7a1d0a9f4ff0b2e0e1e6e4d4b3a1f7a8c9d6d1b6a2f5c3e4d7b8a9c0d1e2f3a4",
)


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RankFile:
    """One file, published at a place that this test has, and no other place to look."""
    import hashlib

    published = tmp_path / "published"
    published.write_bytes(GOOD)
    file = RankFile("tiny.tiktoken", published.as_uri(), hashlib.sha256(GOOD).hexdigest())
    monkeypatch.setattr(_vocabularies, "_FILES", {"tiny": file})
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path / "theirs"))
    return file


def put(path: Path, data: bytes = GOOD) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def expect_read(path: Path) -> None:
    """This is the file that is read: damaged, it is the one that is named."""
    put(path, b"damaged")
    with pytest.raises(DamagedError, match=re.escape(str(path))):
        read_vocabulary("tiny")
    assert put(path).read_bytes() == read_vocabulary("tiny")


def test_the_names_in_the_cache_are_those_of_tiktoken():
    assert _FILES["cl100k_base"].cache_name == "9b5ad71b2ce5302211f9c61530b329a4922fc6a4"
    assert _GPT2_MERGES.cache_name == "6d1cbeee0f20b3d9449abfede4726ed8212e3aee"


def test_every_place_in_order(tiny: RankFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    ours = tmp_path / "cache" / "hotgrid" / "vocabularies" / tiny.name
    assert read_vocabulary("tiny") == GOOD  # fetched
    assert ours.read_bytes() == GOOD
    assert [path.name for path in ours.parent.iterdir()] == [tiny.name]
    expect_read(ours)
    expect_read(theirs := tmp_path / "theirs" / tiny.cache_name)
    folder = tmp_path / "folder"
    monkeypatch.setenv("HOTGRID_VOCAB_DIR", str(folder))
    expect_read(theirs)
    expect_read(mine := folder / tiny.name)
    given = put(tmp_path / "given.tiktoken")
    mine.write_bytes(b"not read")
    assert read_vocabulary("tiny", given) == GOOD
    assert read_vocabulary("tiny", theirs.parent) == GOOD
    with pytest.raises(MissingPartError, match=r"there is no `tiny\.tiktoken` at"):
        read_vocabulary("tiny", tmp_path / "nowhere")


def test_an_empty_cache_folder_switches_tiktokens_cache_off(
    tiny: RankFile, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "")
    assert len(list(_vocabularies._places(tiny))) == 1


@pytest.mark.parametrize("place", ["theirs", "ours", "given"])
def test_a_file_that_is_not_the_right_one_is_never_used(
    place: str, tiny: RankFile, tmp_path: Path
):
    ours = tmp_path / "cache" / "hotgrid" / "vocabularies" / tiny.name
    path = {"theirs": tmp_path / "theirs" / tiny.cache_name, "ours": ours}.get(
        place, tmp_path / "given"
    )
    put(path, b"IQ== 0\n")
    with pytest.raises(DamagedError) as refusal:
        read_vocabulary("tiny", path if place == "given" else None)
    for words in (str(path), tiny.sha256, "Delete it", tiny.url):
        assert words in str(refusal.value)


def test_what_is_fetched_is_checked_too(tiny: RankFile, tmp_path: Path):
    (tmp_path / "published").write_bytes(b"something else")
    with pytest.raises(DamagedError):
        read_vocabulary("tiny")
    assert not list((tmp_path / "cache").rglob(tiny.name))


def test_without_a_network(tiny: RankFile, tmp_path: Path):
    (tmp_path / "published").unlink()
    with pytest.raises(MissingPartError) as refusal:
        read_vocabulary("tiny")
    for words in (tiny.url, "HOTGRID_VOCAB_DIR", str(tmp_path / "theirs")):
        assert words in str(refusal.value)


def test_a_cache_that_cannot_be_written_is_ignored(tiny: RankFile, tmp_path: Path):
    put(tmp_path / "cache", b"a file where a folder should be")
    assert read_vocabulary("tiny") == GOOD


def test_gpt2_from_the_form_it_was_published_in(tmp_path: Path):
    put(tmp_path / "vocab.bpe", files()[_GPT2_MERGES])
    assert read_vocabulary("r50k_base", tmp_path) == files()[_FILES["r50k_base"]]


def test_an_encoding_from_a_folder(tmp_path: Path):
    put(tmp_path / "cl100k_base.tiktoken", files()[_FILES["cl100k_base"]])
    encoding = get_encoding("cl100k_base", vocabulary=tmp_path)
    assert encoding.encode("Hello world") == [9906, 1917]
    assert encoding is not get_encoding("cl100k_base")
    assert stat.S_ISREG((tmp_path / "cl100k_base.tiktoken").stat().st_mode)
