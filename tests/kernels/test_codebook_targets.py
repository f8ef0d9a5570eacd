"""Which form a target gets, by the bytes that are really kept; and wrong arguments."""

import itertools

import pytest
import torch
from hypothesis import given, settings, strategies as st
from torch import nn

from hotgrid.errors import ArgumentError
from hotgrid.kernels import CodebookLinear, Target, compress
from hotgrid.kernels._codebook._learn._budget import within_bytes
from hotgrid.kernels._codebook._learn._fit import RECIPES, Sizes
from hotgrid.kernels._codebook._learn._searched import SearchedLayer

from .gemv_cases import normal


def linear(cols: int, rows: int) -> nn.Linear:
    torch.manual_seed(0)
    return nn.Linear(cols, rows)


def searched(layer: nn.Linear, name: str = "") -> SearchedLayer:
    return SearchedLayer(name, layer, None, None, False)


def kept_bytes(model: nn.Module) -> int:
    return sum(each.bytes for each in model.modules() if isinstance(each, CodebookLinear))


@settings(max_examples=40)
@given(
    rows=st.integers(1, 70),
    cols=st.integers(1, 140),
    kinds=st.integers(1, 70),
    rotated=st.booleans(),
)
def test_the_size_of_a_form_is_known_before_it_is_learned(
    rows: int, cols: int, kinds: int, rotated: bool
):
    weight = normal(kinds, cols).repeat(rows // kinds + 1, 1)[:rows]
    signs = torch.ones(cols, dtype=torch.int8) if rotated else None
    sizes = Sizes(rows, cols, min(kinds, rows), rotated)
    for recipe in RECIPES:
        if cols % recipe.width == 0 and (recipe.form != "pq" or recipe.bits in (1.0, 4.0)):
            coded = recipe.fit(weight, torch.ones(cols), signs if recipe.form == "pq" else None)
            assert coded.bytes <= recipe.bytes(sizes)
            assert coded.bytes == recipe.bytes(sizes) or recipe.form == "rows"


def test_rows_that_nothing_names_are_not_kept():
    layer = nn.Linear(64, 512, bias=False)
    layer.weight.data = normal(40, 64).repeat(13, 1)[:512]
    found = compress(layer)
    assert (found.form, found.bytes) == ("rows", 40 * (64 + 4) + 512)


@pytest.mark.parametrize(
    ("shape", "target"),
    [
        pytest.param((512, 256), None, marks=pytest.mark.long),
        ((128, 64), None),
        ((64, 16), None),
        ((784, 128), None),
        ((256, 10), None),
        ((128, 64), "error<=0.1"),
    ],
)
def test_nothing_smaller_meets_an_error(shape: tuple[int, int], target: str | None):
    """Layers of at most 256 rows: `rows` has all of them and is no smaller than int8."""
    layer, limit = linear(*shape), 0.15 if target is None else 0.1
    found, tried = compress(layer, target), searched(layer)
    assert found.error <= limit
    for recipe in tried.recipes:
        if tried.bytes(recipe) < found.bytes:
            assert tried.error(recipe) > limit, recipe


def test_bits_hold_for_everything_that_is_kept():
    """The codes, a scale of 32 bits for each row, and a table of two books of 8 by 16."""
    found = compress(linear(128, 64), "1bit", max_error=9)
    assert found.bits <= 1 + 32 / 128 + 8 * 2 * 8 * 16 * 4 / (64 * 128)
    for target, most in (("2bit", 2.5), ("3bit", 3.5), ("4bit", 4.3), ("8bit", 8.3)):
        assert compress(linear(128, 256), target, max_error=9).bits <= most
    with pytest.raises(ArgumentError, match=r"`rows`, takes 8\.\d+, everything counted"):
        compress(linear(128, 64), "1bit", form="rows")


def test_a_form_that_is_named_is_granted_by_the_width_of_its_codes():
    found = compress(linear(256, 128), "4bit", form="int4")
    assert (found.form, found.bits) == ("int4", 4.25)
    assert compress(linear(256, 128), "4bit").form == "pq"
    with pytest.raises(ArgumentError, match=r"no form of 3.9 bits .* takes 4.25"):
        compress(linear(256, 128), "3.9bit", form="int4")


def test_a_smaller_form_that_is_more_exact_is_taken():
    """Blocks of 32 rows are mostly padding here: 1-bit codes take more than those of 4."""
    layer = linear(512, 10)
    narrow = next(each for each in RECIPES if each.bits == 1.0)
    found = compress(layer, "1bit")
    assert found.bytes < searched(layer).bytes(narrow)
    assert found.error < 0.1


def test_of_one_form_the_widest_codes_are_taken_and_not_the_most_bytes():
    layer = linear(512, 10)
    tried = searched(layer)
    for bits, target in ((3.0, "3bit"), (4.0, "4bit")):
        found = compress(layer, target, form="pq")
        best = min(
            tried.error(each)
            for each in tried.recipes
            if each.form == "pq" and tried.bytes(each) <= tried.granted_bytes(bits)
        )
        assert found.error == pytest.approx(best, rel=0.05)


def test_rows_are_learned_for_repeated_rows():
    noise, layer = normal(1200, 256), nn.Linear(256, 1200)
    for weight, expected in (
        (noise, "pq"),
        (normal(100, 256, seed=1).repeat(12, 1) + noise / 30, "rows"),
    ):
        layer.weight.data = weight
        tried = searched(layer)
        assert tried.within_bits(4.0).form == expected
        assert ("rows" in [each.form for each in tried.tried]) == (expected == "rows")
    layer.weight.data = noise
    assert compress(layer, "2.1bit", "rows", force=True).error > 0.5


def network() -> nn.Sequential:
    torch.manual_seed(0)
    parts = nn.Linear(32, 256), nn.ReLU(), nn.Linear(256, 64), nn.ReLU(), nn.Linear(64, 10)
    return nn.Sequential(*parts)


@pytest.mark.parametrize("size", [10_000, 12_000, 14_000, 20_000, 30_000])
def test_a_size_is_met_by_all_layers_together(size: int):
    """As good as trying all combinations, or nearly."""
    model = network()
    layers = [searched(each) for each in model if isinstance(each, nn.Linear)]
    chosen = within_bytes(layers, size, 9.0)
    total = lambda choice: sum(each.bytes(r) for each, r in zip(layers, choice, strict=True))
    wrong = lambda choice: sum(
        each.error(r) ** 2 for each, r in zip(layers, choice, strict=True)
    )
    fits = (c for c in itertools.product(*(e.recipes for e in layers)) if total(c) <= size)
    assert total(chosen) <= size
    assert wrong(chosen) <= 1.3 * min(map(wrong, fits)) + 1e-6


def test_a_size_is_refused_only_if_nothing_is_that_small():
    torch.manual_seed(0)
    parts = nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)
    model = nn.Sequential(*parts)
    assert kept_bytes(compress(model, Target(bytes=60_000), max_error=9)) <= 60_000
    with pytest.raises(ArgumentError) as refusal:
        compress(model, "45KB", max_error=9)
    assert (
        str(refusal.value)
        == "`target` of 45,000 bytes is too small: the smallest forms of all "
        "layers take 45,624 bytes, of which `0` 7,168, `2` 35,840, `4` 2,616"
    )


def test_a_size_that_costs_too_much_error_says_which_layer():
    with pytest.raises(ArgumentError, match=r"`target` of 9,000 bytes: form `pq` .* on `\d`"):
        compress(network(), "9KB")
    assert kept_bytes(compress(network(), "9KB", force=True)) <= 9_000


@pytest.mark.parametrize("text", ["error<=1e-2", "error <= 1.0E-2", "error<.1e-1"])
def test_exponents_are_understood(text: str):
    assert Target.of(text) == Target(error=0.01)
    assert Target.of("2e6B") == Target(bytes=2e6)


@pytest.mark.parametrize("value", ["0.1", True, float("nan"), -1, [0.1], 1j])
def test_a_number_is_a_number(value: object):
    with pytest.raises(ArgumentError, match=r"`max_error` is .*; expected a positive number"):
        compress(linear(8, 8), max_error=value)
    for name in ("bits", "bytes", "error"):
        with pytest.raises(ArgumentError, match=f"`{name}` is .*; expected a positive number"):
            Target(**{name: value})


@pytest.mark.parametrize("name", ["force", "rotate"])
@pytest.mark.parametrize("value", ["no", 0, None])
def test_a_truth_value_is_one(name: str, value: object):
    with pytest.raises(ArgumentError, match=f"`{name}` is {value!r}; expected True or False"):
        compress(linear(8, 8), **{name: value})


@pytest.mark.parametrize("form", ["int8", "int4", "rows"])
def test_only_sub_vectors_are_rotated(form: str):
    with pytest.raises(ArgumentError, match=f"`rotate` is for the form `pq`; `{form}` is not"):
        compress(linear(64, 64), form=form, rotate=True)
    assert compress(linear(64, 64), form="pq", rotate=True).signs is not None
