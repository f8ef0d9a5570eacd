"""The recipe: what follows from the depth, and what is given instead."""

import math

import pytest
from hypothesis import given, strategies as st

from hotgrid.chat import GPT, GPTConfig, Recipe, optimizers
from hotgrid.errors import ArgumentError


def test_depth_12_is_the_published_one() -> None:
    recipe = Recipe.of(12)
    assert recipe["size"] == 768
    assert recipe["heads"] == recipe["kv_heads"] == 6
    assert recipe["batch_tokens"] == 2**19
    parameters = 12 * 768**2 * 12 + 32_768 * 768
    assert recipe["tokens"] == 12 * parameters
    assert recipe["steps"] == round(12 * parameters / 2**19)
    assert recipe["matrix_rate"] == pytest.approx(0.02)
    assert recipe["embedding_rate"] == pytest.approx(0.3)
    assert recipe["head_rate"] == pytest.approx(0.008)
    assert recipe["decay"] == pytest.approx(0.28)


@given(
    depth=st.integers(1, 64),
    vocabulary=st.sampled_from([512, 8192, 32_768]),
    batch=st.none() | st.sampled_from([4096, 2**18]),
)
def test_any_depth_is_a_whole(depth: int, vocabulary: int, batch: int | None) -> None:
    recipe = Recipe.of(depth, vocabulary=vocabulary, batch_tokens=batch)
    config = recipe.config()
    assert isinstance(config, GPTConfig)
    assert config.layers == depth
    assert config.size >= 64 * depth
    assert config.size % 128 == 0
    assert math.log2(recipe["batch_tokens"]).is_integer()
    assert recipe["warmup"] + recipe["warmdown"] <= recipe["steps"]
    assert [row[0] for row in recipe.rows()] == list(recipe.values)


def test_what_follows_uses_what_is_given() -> None:
    recipe = Recipe.of(4, vocabulary=1024, batch_tokens=2**17, steps=100)
    assert recipe["matrix_rate"] == pytest.approx(0.02 * math.sqrt(2**17 / 2**19))
    assert recipe["warmup"] == 10
    rows = {name: (value, origin) for name, value, origin in recipe.rows()}
    assert rows["steps"] == ("100", "given")
    assert rows["vocabulary"] == ("1,024", "given")
    assert rows["heads"] == ("2", "size / 128")


def test_a_given_size_decides_the_number_of_tokens() -> None:
    recipe = Recipe.of(4, vocabulary=1024, size=64)
    assert recipe["tokens"] == 12 * (12 * 64**2 * 4 + 1024 * 64)
    assert Recipe.of(4, vocabulary=1024)["tokens"] == 12 * (12 * 256**2 * 4 + 1024 * 256)


def test_names_that_are_wrong() -> None:
    with pytest.raises(ArgumentError, match="did you mean `batch_tokens`"):
        Recipe.of(4, batch_token=5)
    with pytest.raises(ArgumentError, match="`depth` must be at least 1, got 0"):
        Recipe.of(0)


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("ratio", 0.0, "above 0, got 0"),
        ("ratio", -1.0, "above 0, got -1"),
        ("tokens", 0, "above 0, got 0"),
        ("batch_tokens", 0, "above 0, got 0"),
        ("size", 0, "above 0, got 0"),
        ("steps", 0, "above 0, got 0"),
        ("steps", -3, "above 0, got -3"),
        ("warmup", -1, "0 or more, got -1"),
        ("final", -0.5, "0 or more, got -0.5"),
        ("matrix_rate", math.nan, "0 or more, got nan"),
    ],
)
def test_values_that_make_no_sense(name: str, value: float, expected: str) -> None:
    with pytest.raises(ArgumentError, match=f"`{name}` must be {expected}"):
        Recipe.of(2, **{name: value})


def test_a_tiny_ratio_is_one_token() -> None:
    assert Recipe.of(2, ratio=1e-12)["tokens"] == 1


def test_heads_that_rotary_positions_cannot_turn() -> None:
    with pytest.raises(ArgumentError, match="a head has 33 elements"):
        Recipe.of(2, size=66, heads=2).config()


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"tied": True},
        {"value_embeddings": True, "mixing": True},
        {"norm": "rms"},
        {"activation": "swiglu"},
    ],
    ids=["plain", "tied", "extras", "gains", "gated"],
)
def test_every_parameter_has_one_optimizer(options: dict[str, object]) -> None:
    recipe = Recipe.of(2, vocabulary=64, context=32, steps=10)
    model = GPT(recipe.config(**options))
    groups = optimizers(model, recipe)
    rows = {row.name: row for row in groups.rows()}
    assert sum(row.elements for row in rows.values()) == sum(
        each.numel() for each in model.parameters()
    )
    matrices = sum(
        each.numel()
        for name, each in model.named_parameters()
        if name.startswith("h.") and each.ndim == 2 and ".values." not in name
    )
    muon = [row for row in rows.values() if "Muon" in row.optimizer]
    assert sum(row.elements for row in muon) == matrices
