"""The contract language: what it accepts, how it prints, and where its errors point."""

import pickle

import pytest

from hotgrid.contracts import Contract, ContractError, ContractSyntaxError
from hotgrid.errors import HotgridError


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("b c", "[b, c]"),
        ("b, c", "[b, c]"),
        ("b, c,", "[b, c]"),
        ("[b, c]", "[b, c]"),
        ("", "[]"),
        ("[]", "[]"),
        ("_ ... 3", "[_, ..., 3]"),
        ('_, "b", ..., "h" * \'p\'', "[_, b, ..., (h*p)]"),
        ("b (h_wins win) (w_wins win) c", "[b, (h_wins*win), (w_wins*win), c]"),
        ("height=h_wins*window", "[height=(h_wins*window)]"),
        ("n = ws ^ 2, any = _", "[n=(ws^2), any=_]"),
        ("a+b-c", "[(a+b-c)]"),
        ("2*w-1", "[((2*w)-1)]"),
        ("z**3", "[(z^3)]"),
        ("-x^3 + 9", "[(((-x)^3)+9)]"),
        ("+x", "[x]"),
        ("(2 (a+b))", "[(2*(a+b))]"),
        ("()", "[1]"),
        ("b h * p", "[b, (h*p)]"),
        ("größe λ", "[größe, λ]"),
    ],
)
def test_what_is_written_is_understood(text, printed):
    assert str(Contract(text)) == printed


@pytest.mark.parametrize(
    ("text", "reason", "place"),
    [
        ("b, h*, c", "nothing follows `*`", 5),
        ("b h w, c", "separates its terms by commas", 2),
        ("b (h w", "never closed", 2),
        ("[b c", "never closed", 4),
        ("b c]", "closes nothing", 3),
        ("b )", "belongs here", 2),
        ("2w", "write `2*w`", 1),
        ("b _+1", "`_` is a whole dimension", 2),
        ("b 1+_", "`_` is a whole dimension", 4),
        ("a ...*2", "`...` is a term", 2),
        ("... b ...", "only one `...`", 6),
        ("x=... c", "cannot have a label", 2),
        ("b $", "`$` means nothing", 2),
        ("z^p", "exponent is a plain number", 2),
        ("z^-1", "exponent is a plain number", 2),
        ("z^65", "at most 64", 2),
        ("9999999999999999999", "no dimension is that large", 0),
        ("h=", "nothing follows the label", 2),
        ('"a b"', "a name is a word", 0),
        ("_=3", "a name is a word", 0),
        (",", "belongs here", 0),
        ("b,,c", "belongs here", 2),
        ("(a+b+c+d+e+f)^40", "too many products", 0),
        ("z^2^2", "belongs here", 3),
        ("(x^64)^64", "too high powers", 0),
        ("((((x^64)^64)^64)^64)^64", "too high powers", 0),
        ("((9^64)^64)^64", "too high powers", 0),
        ("2(b)", "write `2*(...)`", 1),
        ("a(b)", "write `a*(...)`", 1),
        ("(" * 200 + "a" + ")" * 200, "nested too deeply", 40),
        ("-" * 400 + "a", "nested too deeply", 40),
    ],
)
def test_a_bad_contract_shows_the_place(text, reason, place):
    with pytest.raises(ContractSyntaxError) as caught:
        Contract(text)
    first, shown, caret = str(caught.value).splitlines()
    assert reason in first
    assert shown == f"  {text}"
    assert caret.index("^") - 2 == place


def test_a_bad_contract_is_an_error_of_every_kind_one_might_catch():
    for kind in (ContractSyntaxError, ContractError, HotgridError, ValueError):
        with pytest.raises(kind):
            Contract("b *")


def test_names_come_in_order_of_appearance():
    assert Contract("c height=(rows window) columns*window").names == (
        "c",
        "height",
        "rows",
        "window",
        "columns",
    )


def test_a_printed_contract_reads_back_as_itself():
    for text in ("b (h p) ... c", "n=ws^2 -x+3", "_ 4 (a b+1)"):
        contract = Contract(text)
        assert Contract(str(contract)) == contract
        assert hash(Contract(str(contract))) == hash(contract)
    assert Contract("a b") != Contract("a c")
    assert Contract("a b") != "a b"


def test_a_contract_survives_pickling():
    contract = pickle.loads(pickle.dumps(Contract("b (h p)")))
    assert contract.unpack("b h", (2, 12), {"p": 4}) == (2, 3)
    assert repr(contract) == "Contract('b (h p)')"
