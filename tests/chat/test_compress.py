"""Compressed models: smaller, close to the original, and read back as they were."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from hotgrid.chat import (
    GPT,
    LanguageModel,
    compress_model,
    load_model,
    measure,
    save_model,
    text_rows,
)
from hotgrid.errors import ArgumentError
from hotgrid.kernels import CodebookLinear
from hotgrid.tokens import Encoding


@pytest.mark.parametrize(("target", "bits"), [("int8", 9.0), ("4bit", 5.5)])
@pytest.mark.parametrize("tied", [False, True])
def test_a_compressed_model_is_small_and_close(
    small_gpt: Callable[..., GPT],
    byte_encoding: Encoding,
    text_file: Path,
    tmp_path: Path,
    target: str,
    bits: float,
    tied: bool,
) -> None:
    model = small_gpt(vocabulary=320, size=128, layers=2, tied=tied)
    language = LanguageModel(model, byte_encoding, {"name": "base", "figures": {"step": 7}})
    rows = text_rows(language, [text_file], most_tokens=512)
    small = compress_model(language, target, rows=rows, force=True)
    assert small.name == f"base-{target}"
    assert small.card["figures"] == {"step, uncompressed": 7}
    layers = [each for each in small.model.modules() if isinstance(each, CodebookLinear)]
    assert len(layers) == 2 * 6 + 1
    coded = sum(each.bytes for each in layers) * 8
    assert coded / sum(each.in_features * each.out_features for each in layers) < bits
    save_model(tmp_path / "base", language)
    save_model(tmp_path / "small", small)
    again = load_model(tmp_path / "small")
    tokens = rows[:2, :-1, 0]
    assert torch.equal(again.model(tokens), small.model(tokens))
    before = measure(language, rows, tmp_path / "base")
    after = measure(again, rows, tmp_path / "small")
    assert after.bytes < before.bytes * (0.55 if tied else 0.4)
    near = 0.02 if target == "int8" else 0.6
    assert after.text.bits_per_byte == pytest.approx(before.text.bits_per_byte, abs=near)
    assert after.text.tokens == before.text.tokens
    # The one that was given has its own weights still.
    assert not any(isinstance(each, CodebookLinear) for each in model.modules())


def test_targets_that_cannot_be_met(
    small_gpt: Callable[..., GPT], byte_encoding: Encoding
) -> None:
    language = LanguageModel(small_gpt(vocabulary=320), byte_encoding)
    with pytest.raises(ArgumentError, match=r"`target` .int9. .*or a form: int8, int4"):
        compress_model(language, "int9")
    small = compress_model(language, "int8")
    with pytest.raises(ArgumentError, match="compressed already"):
        compress_model(small, "int8")


def test_python_has_text_to_measure_with(
    small_gpt: Callable[..., GPT], byte_encoding: Encoding
) -> None:
    language = LanguageModel(small_gpt(vocabulary=320), byte_encoding)
    rows = text_rows(language, most_tokens=16_384)
    assert rows.shape == (512, 33, 2)
    text = byte_encoding.decode(rows[:, :, 0].flatten().tolist())
    assert "statement" in text
