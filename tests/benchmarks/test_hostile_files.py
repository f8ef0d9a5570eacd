"""A small part of the study of hostile files: nothing crashes, and nothing goes missing."""

import importlib
import random
from pathlib import Path

from hotgrid.blt import Corpus, IngestSettings, ingest


def test_hostile_files_are_documents_or_in_the_quarantine(scripts: Path, tmp_path: Path):
    study = importlib.import_module("study_hostile_files")
    study.write_batch(tmp_path / "in", 150, random.Random(7))
    for name, data in study.bombs().items():
        (tmp_path / "in" / name).write_bytes(data)
    settings = IngestSettings(decoded_bytes=1 << 22, archive_bytes=1 << 23)
    ingest([str(tmp_path / "in")], tmp_path / "out", settings, workers=0)
    corpus = Corpus(tmp_path / "out")
    assert list(study.wrong(tmp_path / "in", corpus)) == []
    reasons = {row["name"].rsplit("/", 1)[-1]: row["reason"] for row in corpus.quarantined()}
    for name in ("bomb.gz", "bomb.bz2", "bomb.zip"):
        assert "the limit" in reasons[name]
    assert "(--decoded-bytes)" in reasons["bomb.png"]
    assert any("depth of 3" in each for each in reasons.values())
