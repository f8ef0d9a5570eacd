"""Text as batches: nothing is lost, doubled or mixed up, and a state is enough to go on."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st

from hotgrid.chat import TextBatches, TextData, TextEncoder, TokenBatch
from hotgrid.data import Shards
from hotgrid.errors import ArgumentError, DamagedError
from hotgrid.tokens import Encoding


def batches(file: Path, encoding: Encoding, **options: object) -> TextBatches:
    settings = {"rows": 2, "context": 31, "epochs": 1} | options
    return TextBatches(Shards([file]), TextEncoder(encoding), encoding, **settings)  # pyright: ignore


def documents(found: list[TokenBatch], bos: int) -> list[list[int]]:
    """The documents of rows, without what begins them."""
    parts = []
    for batch in found:
        for tokens, targets in zip(batch.tokens.tolist(), batch.targets.tolist(), strict=True):
            row = [*tokens, targets[-1]]
            assert row[0] == bos
            assert row[1:] == targets
            for token in row:
                if token == bos:
                    parts.append([])
                else:
                    parts[-1].append(token)
    return parts


def test_every_token_of_the_text_comes_once(text_file: Path, byte_encoding: Encoding) -> None:
    bos = byte_encoding.encode_single_token("<|bos|>")
    stream = batches(text_file, byte_encoding)
    found = list(stream)
    texts = [json.loads(line)["text"] for line in text_file.read_text().splitlines()]
    whole = sum(len(text) for text in texts)
    packed = sum(map(len, documents(found, bos)))
    # What does not fill a batch at the end is left out.
    assert whole - 2 * 2 * 32 < packed <= whole
    assert stream.counters.tokens == whole
    assert stream.counters.bytes == whole
    assert stream.counters.loss == 0
    pieces = {byte_encoding.decode(each) for each in documents(found, bos)}
    known = "\n".join(texts)
    assert all(piece in known for piece in pieces)
    assert len(pieces & set(texts)) > 20


def test_a_stream_goes_on_from_its_state(text_file: Path, byte_encoding: Encoding) -> None:
    whole = [batch.tokens for batch in batches(text_file, byte_encoding)]
    for at in (1, 5, len(whole) - 2):
        first = batches(text_file, byte_encoding)
        for _ in range(at):
            next(first)
        state = json.loads(json.dumps(first.state()))
        first.close()
        second = batches(text_file, byte_encoding)
        second.load(state)
        rest = [batch.tokens for batch in second]
        assert len(rest) == len(whole) - at
        assert all(torch.equal(a, b) for a, b in zip(rest, whole[at:], strict=True))


def test_ranks_share_the_text(text_file: Path, byte_encoding: Encoding) -> None:
    bos = byte_encoding.encode_single_token("<|bos|>")
    streams = [batches(text_file, byte_encoding, rank=rank, ranks=2) for rank in range(2)]
    found = [documents(list(each), bos) for each in streams]
    read = [each.counters.documents for each in streams]
    assert sum(read) == 400
    assert min(read) > 100
    assert found[0] != found[1]


def test_documents_are_told_apart(text_file: Path, byte_encoding: Encoding) -> None:
    bos = byte_encoding.encode_single_token("<|bos|>")
    batch = next(batches(text_file, byte_encoding, isolate=True))
    assert batch.documents is not None
    for tokens, numbers in zip(batch.tokens.tolist(), batch.documents.tolist(), strict=True):
        begins = np.cumsum([token == bos for token in tokens])
        assert numbers == begins.tolist()


def test_counts_mask_targets() -> None:
    rows = torch.tensor([[[9, 0], [1, 0], [2, 1], [3, 1], [9, 0]]])
    batch = TokenBatch.of(rows, 9, isolate=False)
    assert batch.tokens.tolist() == [[9, 1, 2, 3]]
    assert batch.targets.tolist() == [[-100, 2, 3, -100]]


@given(
    parts=st.lists(st.text("ab \n", min_size=1, max_size=30_000), max_size=4),
    share=st.floats(0.05, 0.95),
)
def test_held_out_and_the_rest_are_the_whole(parts: list[str], share: float) -> None:
    ranks = {bytes([byte]): byte for byte in range(256)}
    encoding = Encoding("bytes", pat_str="gpt2", mergeable_ranks=ranks, special_tokens={})
    text = "\n\n".join(parts)
    halves = [
        TextEncoder(encoding, hold_out=share, held=held)([text]) for held in (False, True)
    ]
    tokens = sorted(token for half in halves for each in half for token in each.tolist())
    whole = TextEncoder(encoding)([text])
    assert tokens == sorted(token for each in whole for token in each.tolist())


def test_rows_to_evaluate_on(text_file: Path, byte_encoding: Encoding) -> None:
    data = TextData([text_file], hold_out=0.1)
    rows = data.held_out(byte_encoding, 63)
    assert rows is not None
    assert rows.shape[1:] == (64, 2)
    held = TextEncoder(byte_encoding, hold_out=0.1, held=True)
    texts = [json.loads(line)["text"] for line in text_file.read_text().splitlines()]
    assert int(rows[..., 1].sum()) == sum(len(each) for each in held(texts))
    # What begins a document and what pads does not count.
    bos = byte_encoding.encode_single_token("<|bos|>")
    assert torch.equal(rows[..., 1] == 0, rows[..., 0] == bos)


def test_a_share_of_0_is_no_evaluation(text_file: Path, byte_encoding: Encoding) -> None:
    assert TextData([text_file], hold_out=0).held_out(byte_encoding, 16) is None
    rows = TextData([text_file], hold_out=0, valid=[text_file]).held_out(byte_encoding, 16)
    assert rows is not None
    assert len(rows)


def test_half_of_a_surrogate_pair_is_read(tmp_path: Path, byte_encoding: Encoding) -> None:
    file = tmp_path / "half.jsonl"
    file.write_text(json.dumps({"text": "a\ud800b" * 200}) + "\n")
    stream = batches(file, byte_encoding)
    text = byte_encoding.decode(next(stream).tokens[0].tolist())
    assert text.startswith("<|bos|>a\N{REPLACEMENT CHARACTER}ba")
    stream.close()


def test_text_that_is_none(tmp_path: Path, byte_encoding: Encoding) -> None:
    (tmp_path / "empty.txt").write_text("  \n")
    with pytest.raises(ArgumentError, match=r"no text in `.*empty.txt`"):
        TextData([tmp_path / "empty.txt"]).expect_text()
    (tmp_path / "short.txt").write_text("only one")
    with pytest.raises(ArgumentError, match=r"choose a larger share \(--hold-out\)"):
        TextData([tmp_path / "short.txt"], hold_out=1e-9).held_out(byte_encoding, 16)
    (tmp_path / "numbers.jsonl").write_text('{"text": 7}\n')
    with pytest.raises(DamagedError, match="'7', a int; expected text"):
        next(batches(tmp_path / "numbers.jsonl", byte_encoding))
    with pytest.raises(ArgumentError, match="`hold_out` is 1"):
        TextEncoder(byte_encoding, hold_out=1)


def test_a_vocabulary_without_bos(text_file: Path) -> None:
    ranks = {bytes([byte]): byte for byte in range(256)}
    plain = Encoding("plain", pat_str="gpt2", mergeable_ranks=ranks, special_tokens={})
    with pytest.raises(ArgumentError, match=r"'plain' has no `<\|bos\|>`"):
        batches(text_file, plain)
