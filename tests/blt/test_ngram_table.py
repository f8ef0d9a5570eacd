"""The n-gram table: against a loop over dictionaries, in parts, from files."""

import math
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st
from safetensors.numpy import save_file

from hotgrid.blt import NgramCounts, NgramTable, load_ngram_table
from hotgrid.errors import ArgumentError, DamagedError

DOCUMENTS = [b"banana bandana", b"ban the banner", b"a", b"", bytes(range(64)) * 2]


def twin(documents: list[bytes], order: int):
    """The next byte's distribution by context, with dictionaries; slow and plain."""
    after: dict[bytes, Counter[int]] = defaultdict(Counter)
    for text in documents:
        for i, byte in enumerate(text):
            for size in range(min(i, order) + 1):
                after[text[i - size : i]][byte] += 1

    def distribution(context: bytes) -> list[float]:
        shorter = distribution(context[1:]) if context else [1 / 256] * 256
        if context not in after:
            return shorter
        counts = after[context]
        total, kinds = sum(counts.values()), len(counts)
        return [(counts[b] + kinds * shorter[b]) / (total + kinds) for b in range(256)]

    return distribution


@pytest.mark.parametrize("order", [2, 4, 5])
def test_probabilities_and_entropies_against_a_loop(order: int):
    counts, distribution = NgramCounts(DOCUMENTS, order), twin(DOCUMENTS, order)
    for text in (b"banana banter", b"xyz", bytes([60, 61, 62, 63, 0, 1, 9])):
        given_p, given_h = counts.probabilities(text), counts.entropies(text)
        for i, byte in enumerate(text):
            p = distribution(text[max(0, i - order) : i])
            assert sum(p) == pytest.approx(1)
            assert given_p[i] == pytest.approx(p[byte], rel=1e-9)
            assert given_h[i] == pytest.approx(-sum(x * math.log(x) for x in p), rel=1e-9)
    wanted = -sum(math.log2(p) for p in counts.probabilities(b"banana")) / 6
    assert counts.bits_per_byte([b"banana"]) == pytest.approx(wanted)


def test_a_table_with_space_for_all_gives_the_entropies():
    counts = NgramCounts(DOCUMENTS, 5)
    table = counts.table((16, 16, 16))
    for text in DOCUMENTS[:4]:
        found = table.entropies(text).numpy()
        np.testing.assert_allclose(found, counts.entropies(text), atol=math.log(256) / 255)


def test_a_small_table_keeps_what_matters_most():
    counts = NgramCounts([b"the cat sat on the mat. " * 40], 5)
    small, text = counts.table((4, 4, 4)), b"the cat sat on the mat. the cat"
    short = NgramCounts([b"the cat sat on the mat. " * 40], 2).table(())
    wanted = torch.from_numpy(counts.entropies(text))
    assert (small.entropies(text) - wanted).abs().mean() < (
        short.entropies(text) - wanted
    ).abs().mean()


@settings(max_examples=30, deadline=None)
@given(data=st.binary(max_size=80), cuts=st.lists(st.integers(0, 80), max_size=6))
def test_parts_give_what_the_whole_gives(data: bytes, cuts: list[int]):
    table = NgramCounts(DOCUMENTS, 5).table((6, 6, 6))
    stream, at, parts = table.stream(), 0, [torch.empty(0)]
    for end in sorted({min(cut, len(data)) for cut in cuts} | {len(data)}):
        parts.append(stream.push(data[at:end]))
        at = end
    assert torch.equal(torch.cat(parts), table.entropies(data))


def test_blocks_do_not_show():
    table = load_ngram_table()
    data = (b"Blocks of sixteen thousand bytes. " * 1500)[:40_000]
    stream = table.stream()
    parts = [stream.push(data[i : i + 999]) for i in range(0, len(data), 999)]
    assert torch.equal(torch.cat(parts), table.entropies(data))


def test_a_file_holds_all(tmp_path: Path):
    table = NgramCounts(DOCUMENTS, 4).table(
        (5, 6), thresholds={"threshold": {"4": 1.0}}, card={"from": "a test"}
    )
    table.save(tmp_path / "t.safetensors")
    again = load_ngram_table(tmp_path / "t.safetensors")
    assert (again.order, again.thresholds, again.card) == (4, table.thresholds, table.card)
    assert torch.equal(again.entropies(b"banana banter"), table.entropies(b"banana banter"))


def test_the_embedded_table_knows_english():
    table = load_ngram_table()
    assert set(table.thresholds) == {"threshold", "jump"}
    assert {"3", "4", "4.5", "6", "8"} == set(table.thresholds["threshold"])
    assert table.card["held out"]["bits per byte"]["prose"] < 3
    text = b" in the beginning of the government of the people "
    entropies = table.entropies(text)
    noise = table.entropies(bytes(np.random.default_rng(0).integers(0, 256, 5000).tolist()))
    assert entropies.mean() < 0.6 * noise.mean()
    # The first letter of a word is harder than the letter after it.
    assert entropies[text.index(b"government")] > entropies[text.index(b"overnment")] + 0.3


def test_wrong_tables_are_refused(tmp_path: Path):
    with pytest.raises(ArgumentError, match="there is no file"):
        load_ngram_table(tmp_path / "none.safetensors")
    file = tmp_path / "t.safetensors"
    file.write_bytes(b"\x08\x00\x00\x00\x00\x00\x00\x00{}      ")
    with pytest.raises(DamagedError, match="not an n-gram table"):
        load_ngram_table(file)
    save_file({"order_0": np.zeros(1, np.uint8)}, file, {"hotgrid.ngram_table": "{}"})
    with pytest.raises(DamagedError, match="shapes"):
        load_ngram_table(file)
    direct = [np.zeros(256**n, np.uint8) for n in range(3)]
    with pytest.raises(ArgumentError, match="power of two"):
        NgramTable(direct, [np.zeros(12, np.uint16)])
    with pytest.raises(ArgumentError, match="no document is longer"):
        NgramCounts([b"", b"short"])
    with pytest.raises(ArgumentError, match="`order` is 9"):
        NgramCounts([b"abc" * 9], 9)
    with pytest.raises(ArgumentError, match="need an order of 5"):
        NgramCounts([b"abcd"], 3).table((4, 4, 4))


def test_other_files_and_texts_are_refused_with_advice(tmp_path: Path):
    from hotgrid.blt import EntropyConfig, EntropyModel, save_entropy_model

    model = EntropyModel(EntropyConfig(size=16, layers=1, heads=2, hidden=16, window=8))
    save_entropy_model(model, tmp_path / "model.safetensors")
    with pytest.raises(DamagedError, match="`load_entropy_model` reads entropy models"):
        load_ngram_table(tmp_path / "model.safetensors")
    for documents in ("text", b"bytes", ["text"]):
        with pytest.raises(ArgumentError, match="must be a list of bytes"):
            model.signals(documents)
    with pytest.raises(ArgumentError, match="expected bytes"):
        load_ngram_table().entropies("text")
