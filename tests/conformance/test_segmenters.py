"""Every segmenter that `hotgrid.blt` exports, through the same battery.

A segmenter enters by being exported. One that needs arguments is listed in `MADE_BY_HAND`.
"""

import inspect
from functools import cache

import pytest
import torch
from hypothesis import given, settings, strategies as st

import hotgrid.blt
from hotgrid.blt import (
    EntropyConfig,
    EntropyModel,
    EntropySegmenter,
    EntropyThreshold,
    NgramCounts,
    Router,
    Segmenter,
    Static,
    patch_lengths,
)
from hotgrid.errors import ArgumentError
from hotgrid.tokens import get_encoding

TEXT = b"def add(a, b):\n    return a + b\n\n\n"
TEXT += b"class Sum:\n    def of(self, x):\n        return x\n"


@cache
def model() -> EntropyModel:
    torch.manual_seed(0)
    return EntropyModel(
        EntropyConfig(size=16, layers=2, heads=2, hidden=16, window=6, length=48)
    ).eval()


@cache
def table():
    return NgramCounts([TEXT, TEXT[10:], b"banana bandana"], 4).table((6, 7))


def between(entropies: torch.Tensor) -> float:
    """A threshold in the widest gap of the middle: parts and a whole are rounded apart."""
    middle = entropies.sort().values[20:-20]
    gap = int(middle.diff().argmax())
    return float(middle[gap] + middle[gap + 1]) / 2


MADE_BY_HAND = {
    "AtMost": lambda kind: kind(EntropyThreshold(table(), 1.5), 3),
    "EntropyBudget": lambda kind: kind(table(), 3.5),
    "EntropyJump": lambda kind: kind(table(), 0.5),
    "EntropyThreshold": lambda kind: kind(model(), between(model().entropies(TEXT))),
    "EntropyThresholdAndJump": lambda kind: kind(table(), 1.0, jump=0.1),
    "Routed": lambda kind: kind(model(), Router(16), 0.3),
    "Tokens": lambda kind: kind(get_encoding("hotgrid_32k")),
}
KINDS = sorted(
    (
        each
        for each in vars(hotgrid.blt).values()
        if inspect.isclass(each)
        and issubclass(each, Segmenter)
        and not inspect.isabstract(each)
    ),
    key=lambda each: each.__name__,
)
each_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
texts = st.one_of(
    st.binary(max_size=40),
    st.text(max_size=30).map(str.encode),
    st.integers(0, len(TEXT)).map(lambda n: TEXT[:n]),
)


@cache
def made(kind: type[Segmenter]) -> Segmenter:
    return MADE_BY_HAND.get(kind.__name__, lambda kind: kind())(kind)


def test_all_are_enrolled():
    names = {kind.__name__ for kind in KINDS}
    assert {"Static", "Space", "Tokens", "Syntax", "Routed", "AtMost"} <= names
    assert {"EntropyThreshold", "EntropyJump", "EntropyThresholdAndJump"} <= names
    assert "EntropyBudget" in names


@each_kind
@settings(max_examples=15, deadline=None)
@given(data=texts)
def test_patches_are_the_bytes(kind: type[Segmenter], data: bytes):
    segmenter = made(kind)
    starts = segmenter.starts(data)
    assert (starts.dtype, starts.shape) == (torch.bool, (len(data),))
    lengths = segmenter.lengths(data)
    assert int(lengths.sum()) == len(data)
    assert bool((lengths > 0).all())
    assert torch.equal(lengths, patch_lengths(starts))
    patches = segmenter.patches(data)
    assert b"".join(patches) == data
    assert [len(each) for each in patches] == lengths.tolist()


@each_kind
@settings(max_examples=15, deadline=None)
@given(data=texts, cuts=st.lists(st.integers(0, 40), max_size=5))
def test_parts_give_what_the_whole_gives(kind: type[Segmenter], data: bytes, cuts: list[int]):
    segmenter = made(kind)
    if not segmenter.causal:
        with pytest.raises(ArgumentError, match="all of them at once"):
            segmenter.stream()
        return
    stream, ends = segmenter.stream(), sorted({min(c, len(data)) for c in cuts} | {len(data)})
    parts, at = [torch.empty(0, dtype=torch.bool)], 0
    for end in ends:
        parts.append(stream.push(data[at:end]))
        at = end
    assert torch.equal(torch.cat(parts), segmenter.starts(data))


def moved(segmenter: Segmenter, data: bytes, at: int, value: int) -> bool:
    """Whether a boundary before a byte moves when the byte changes, or goes with the rest."""
    other = data[:at] + bytes([value]) + data[at + 1 :]
    before = segmenter.starts(data)[:at]
    kept = torch.equal(before, segmenter.starts(other)[:at])
    return not (kept and torch.equal(before, segmenter.starts(data[:at])))


@each_kind
@settings(max_examples=15, deadline=None)
@given(data=texts.filter(len), where=st.integers(0, 99), value=st.integers(0, 255))
def test_a_causal_one_never_moves_an_earlier_boundary(
    kind: type[Segmenter], data: bytes, where: int, value: int
):
    if made(kind).causal:
        assert not moved(made(kind), data, where % len(data), value)


@each_kind
def test_one_that_says_it_is_not_causal_is_not(kind: type[Segmenter]):
    if not made(kind).causal:
        assert any(moved(made(kind), TEXT, at, 33) for at in range(1, len(TEXT)))


@each_kind
def test_it_cuts_somewhere(kind: type[Segmenter]):
    count = len(made(kind).lengths(TEXT))
    assert 1 < count < len(TEXT)


@each_kind
def test_entropies_that_were_computed_before_are_enough(kind: type[Segmenter]):
    segmenter = made(kind)
    if isinstance(segmenter, EntropySegmenter):
        entropies = segmenter.model.entropies(TEXT)
        assert torch.equal(segmenter.starts_of(entropies), segmenter.starts(TEXT))


def test_the_first_byte_begins_a_patch():
    with pytest.raises(ArgumentError, match="first byte"):
        patch_lengths(torch.tensor([False, True]))
    assert Static(3).lengths(b"").tolist() == []
