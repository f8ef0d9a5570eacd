"""Fused decoding without a GPU: interpreted, compiled, and which models it is for."""

from array import array
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from hotgrid.chat import Sampling
from hotgrid.chat._generate._fused._batch import FusedBatch
from hotgrid.chat._generate._fused._step import fusible, understood
from hotgrid.chat._generate._row import Row
from hotgrid.chat._generate._sampling import uniform, uniforms
from hotgrid.kernels import compress

from .tiny import random_gpt


@pytest.mark.long
def test_it_agrees_with_plain_decoding(run_apart: Callable[..., str]) -> None:
    found = run_apart("triton_decode_twins.py", TRITON_INTERPRET="1")
    assert "3 cases, wrong: []" in found


@pytest.mark.long
def test_it_agrees_for_every_kind_of_model_and_sampling(run_apart: Callable[..., str]) -> None:
    found = run_apart("triton_decode_twins.py", "long", TRITON_INTERPRET="1")
    assert "17 cases, wrong: []" in found


@pytest.mark.long
def test_the_kernels_compile_and_read_weights_before_they_wait(
    run_apart: Callable[..., str], tmp_path: Path
) -> None:
    found = run_apart("triton_decode_compiles.py", TRITON_CACHE_DIR=str(tmp_path))
    assert "17 kernels" in found


@pytest.mark.parametrize(
    ("numbers", "is_known"),
    [
        ({}, True),
        ({"activation": "swiglu", "norm": "rms", "tied": True, "window": "SL"}, True),
        ({"mixing": True}, False),
        ({"value_embeddings": True}, False),
        ({"norm": "layer"}, False),
        ({"activation": "mish"}, False),
    ],
    ids=str,
)
def test_which_models_it_is_for(numbers: dict[str, object], is_known: bool) -> None:
    model = random_gpt(**numbers)
    assert understood(model) is is_known
    # There is no GPU here.
    assert not fusible(model)


def test_compressed_and_double_models_are_decoded_plainly() -> None:
    model = random_gpt(size=64)
    assert not understood(compress(model, form="int8"))
    assert not understood(model.to(torch.float64))


def test_every_kind_of_step_is_prepared(monkeypatch: pytest.MonkeyPatch) -> None:
    model = random_gpt()
    caches = [(torch.zeros(16, 2, 16), torch.zeros(16, 2, 16)) for _ in model.blocks()]
    batch = FusedBatch(model, caches, 16, 2, 1, 4)
    for name in ("embed", "feed", "choose"):
        monkeypatch.setattr(batch._step, name, lambda *_, **__: None)
    batch.prepare()
    ready = dict(batch._made)
    row = Row([1], 0, -1, array("q"))
    batch.feed([row])
    for heats in ([0.0, 0.0], [0.0, 0.7]):
        batch.start([row, row], heats, np.zeros((2, 2)))
    assert batch._made == ready


def test_uniforms_are_those_of_one_at_a_time() -> None:
    seeds, firsts = [0, 7, -3, 2**63 - 1, 2**64 - 1], [0, 5, -2, 11, 3]
    found = uniforms(seeds, firsts, 4)
    for column, (seed, first) in enumerate(zip(seeds, firsts, strict=True)):
        wanted = [uniform(seed, first + place) for place in range(4)]
        np.testing.assert_array_equal(found[:, column], wanted)


@pytest.mark.parametrize(
    ("sampling", "plain"),
    [
        (Sampling(), True),
        (Sampling(temperature=0, top_k=3), True),
        (Sampling(top_k=3), False),
        (Sampling(top_p=1.0), False),
        (Sampling(repetition=1.1), False),
        (Sampling(logprobs=0), False),
    ],
    ids=str,
)
def test_plain_sampling(sampling: Sampling, plain: bool) -> None:
    assert sampling.plain is plain
