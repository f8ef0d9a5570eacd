"""A failed check says everything in one block."""

import sys

import pytest

from hotgrid.contracts import Contract, ContractError, assert_shape, checked
from hotgrid.errors import ArgumentError, ContractSyntaxError


def test_the_whole_block():
    contract = Contract("batch, height=h_wins*window, w_wins*window, channels")
    line = sys._getframe().f_lineno + 2
    with pytest.raises(ContractError) as caught:
        contract.check((2, 20, 30, 3), {"window": 3})
    assert str(caught.value) == (
        "the shape does not meet its contract\n"
        f"  at:         test_errors.py:{line} in test_the_whole_block\n"
        "  dimension:  1 is 20, against height=(h_wins*window)\n"
        "  because:    no whole number `h_wins` gives 20 with window = 3\n"
        "  shape:      (2, 20, 30, 3)\n"
        "                  ^^\n"
        "  contract:   [batch, height=(h_wins*window), (w_wins*window), channels]\n"
        "  bindings:   {window: 3, batch: 2, height: 20}"
    )
    mismatch = caught.value.mismatch
    assert mismatch is not None
    assert mismatch.shape == (2, 20, 30, 3)
    assert mismatch.dimension == 1
    assert mismatch.expression == "height=(h_wins*window)"
    assert mismatch.bindings == {"window": 3, "batch": 2, "height": 20}
    assert mismatch.location == f"test_errors.py:{line} in test_the_whole_block"


@pytest.mark.parametrize(
    ("contract", "shape", "given", "reason"),
    [
        ("b c", (2,), None, "the contract has 2 dimensions, the shape has 1"),
        ("b", (2, 3), None, "the contract has 1 dimension, the shape has 2"),
        ("b ... c", (2,), None, "the contract has at least 2 dimensions, the shape has 1"),
        ("3", (4,), None, "this size is 4, not 3"),
        ("b b", (2, 3), None, "`b` is 2, but this size is 3"),
        ("h*p", (13,), {"p": 4, "h": 3}, "(h*p) is 12, but this size is 13"),
        ("h+p", (3,), {"p": 5}, "`h` would have to be -2 with p = 5"),
        ("z^3", (26,), None, "no whole number `z` gives 26"),
        ("x*x-4*x+3", (0,), None, "`x` could be 1 or 3; give it in `bindings`"),
        ("h*p", (12,), None, "`h` and `p` are unknown; give all but one of them in `bindings`"),
        ("a*b*c", (8,), None, "`a`, `b` and `c` are unknown"),
        (
            "h*window",
            (12,),
            {"widow": 4},
            "`widow` was given, which is not in the contract; did you mean `window`?",
        ),
        ("a+b a-b", (7, 4), None, "`a` would have to be 11/2"),
        ("a+b a+b", (7, 8), None, "contradicts the other dimensions"),
    ],
)
def test_the_reason_is_given_in_words(contract, shape, given, reason):
    with pytest.raises(ContractError) as caught:
        Contract(contract).check(shape, given)
    assert reason in str(caught.value)


def test_the_place_is_the_users_line_through_every_entry_point():
    def here() -> str:
        return "in test_the_place_is_the_users_line_through_every_entry_point"

    @checked(x="a 3")
    def function(x):
        return x

    contract = Contract("a 3")
    for call in (
        lambda: assert_shape("a 3", (1, 2)),
        lambda: contract.unpack("a", (1, 2)),
        lambda: function((1, 2)),
    ):
        with pytest.raises(ContractError) as caught:
            call()
        assert "test_errors.py" in str(caught.value)
        assert "<lambda>" in str(caught.value)
    with pytest.raises(ContractError) as caught:
        contract.check((1, 2))
    assert here() in str(caught.value)


HUGE = 10**5001 + 1


@pytest.mark.parametrize(
    ("contract", "shape"),
    [
        ("3 3", (HUGE, 3)),
        ("a a", (HUGE, 3)),
        ("2*a 3", (HUGE, 3)),
        ("a+b a-b", (HUGE, 4)),
        ("a^2+7", (HUGE,)),
        ("a", (HUGE, 3)),
        ("2*a+4*b 3*a+6*b", (2, HUGE)),
    ],
)
def test_sizes_too_long_to_write_are_shown_by_their_bits(contract: str, shape: tuple[int, ...]):
    with pytest.raises(ContractError, match="a number of 16,613 bits"):
        Contract(contract).check(shape)


def test_a_negative_size_too_long_to_write():
    with pytest.raises(ArgumentError, match=r"negative, got shape .*16,613 bits"):
        Contract("a").check((-HUGE,))


@pytest.mark.parametrize(
    "text", ["+".join(["long"] * 20_000), " ".join("ab" * 40 for _ in range(1250))]
)
def test_a_long_contract_is_shortened_in_an_error(text: str):
    with pytest.raises(ContractError) as problem:
        Contract(text).check((3, 4))
    assert len(str(problem.value)) < 5_000
    assert "characters)" in str(problem.value)
    assert len(problem.value.mismatch.contract) > 90_000
    with pytest.raises(ContractError) as problem:
        Contract(text).unpack("other", (3, 4))
    assert len(str(problem.value)) < 5_000


@pytest.mark.parametrize("at", [0, 30_000, 59_999])
def test_a_long_text_that_is_no_contract_is_shown_around_the_place(at: int):
    text = "a " * at + "$ " + "a " * (59_999 - at)
    with pytest.raises(ContractSyntaxError) as problem:
        Contract(text)
    _, shown, caret = str(problem.value).split("\n")
    assert len(shown) < 1_200
    assert shown[caret.index("^")] == "$"
    with pytest.raises(ContractSyntaxError) as problem:
        Contract("a" * 100_000 + "(b)")
    assert len(str(problem.value)) < 5_000
