"""The texts of the token benchmarks come without markup."""

import importlib
from pathlib import Path

import pytest

FILES = {
    "text": ("as <b>it</b> is", "as <b>it</b> is"),
    "html": ("<head>no</head><p>Größe  x</p><p>ascii only</p>", "Größe xascii only"),
    "emoji": (
        '<ldml><annotation cp="\u2602">rain &amp; umbrella</annotation></ldml>',
        "\u2602 rain & umbrella",
    ),
}


@pytest.fixture
def corpora(scripts: Path):
    """The script that makes the corpora."""
    return importlib.import_module("make_corpora")


@pytest.mark.parametrize("kind", FILES)
def test_each_kind_of_file_loses_its_markup(corpora, kind: str):
    file, text = FILES[kind]
    assert corpora.plain(file, kind, set()) == text


def test_xml_files_are_read_as_xml(corpora):
    sources = [source for found in corpora.CORPORA.values() for source in found]
    assert {source.kind for source in sources} == set(FILES)
    assert all(source.kind == "emoji" for source in sources if source.files.endswith(".xml"))


def test_an_unknown_kind_is_refused(corpora):
    with pytest.raises(ValueError, match="annotations"):
        corpora.Source("unicode-cldr-core", "*.xml", 1, "annotations")
