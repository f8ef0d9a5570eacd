"""check, unpack and their trying forms, by example."""

import concurrent.futures
import json
import pickle
from collections.abc import MutableMapping

import numpy as np
import pytest
import torch

from hotgrid.contracts import Contract, ContractError, assert_shape, unpack_shape
from hotgrid.errors import ArgumentError

NINE = Contract("_, b, ..., h*p, w*p, z^3, c")
SHAPE = (12, 2, 1, 2, 3, 12, 8, 27, 5)
GIVEN = {"p": 4, "c": 5}


def test_check_returns_what_was_given_and_found():
    found = NINE.check(SHAPE, GIVEN)
    assert found == {"b": 2, "h": 3, "p": 4, "w": 2, "z": 3, "c": 5}
    assert found == {"b": 2, "h": 3, "p": 4, "w": 2, "z": 3, "c": 5}
    assert GIVEN == {"p": 4, "c": 5}


def test_unpack_in_the_order_asked():
    assert NINE.unpack(("z", "b"), SHAPE, GIVEN) == (3, 2)
    assert NINE.unpack(["h", "w"], SHAPE, GIVEN) == (3, 2)
    assert NINE.unpack("h, w", SHAPE, GIVEN) == (3, 2)
    assert NINE.unpack((), SHAPE, GIVEN) == ()


@pytest.mark.parametrize(
    ("contract", "shape", "given", "found"),
    [
        ("p*p", (49,), None, {"p": 7}),
        ("p^2 q", (0, 5), None, {"p": 0, "q": 5}),
        ("h*p p", (12, 4), None, {"h": 3, "p": 4}),
        ("a*b*c b c", (24, 3, 4), None, {"a": 2, "b": 3, "c": 4}),
        ("a+b a-b", (7, 3), None, {"a": 5, "b": 2}),
        ("a+b+c a+b-c a", (10, 4, 2), None, {"a": 2, "b": 5, "c": 3}),
        ("x*x+x", (12,), None, {"x": 3}),
        ("2*w-1", (7,), None, {"w": 4}),
        ("h-k+1", (6,), {"k": 3}, {"k": 3, "h": 8}),
        ("-x+10", (4,), None, {"x": 6}),
        ("-x^3+9", (1,), None, {"x": 2}),
        ("x^0 x", (1, 5), None, {"x": 5}),
        ("h*p h", (0, 7), {"p": 0}, {"p": 0, "h": 7}),
        ("height=h*p", (12,), {"p": 4}, {"height": 12, "h": 3, "p": 4}),
        ("n=_ n", (3, 3), None, {"n": 3}),
        ("... c", (1, 2, 3), None, {"c": 3}),
        ("...", (), None, {}),
        ("", (), None, {}),
        ("a ...", (4,), None, {"a": 4}),
        ("x*x", (9,), {"x": 3}, {"x": 3}),
        ("n", (2**62,), None, {"n": 2**62}),
        ("a*b", (2**62,), {"a": 2**31}, {"a": 2**31, "b": 2**31}),
        ("z^3", (1290**3,), None, {"z": 1290}),
        ("z^62", (2**62,), None, {"z": 2}),
        ("x^2-6*x+10", (1,), None, {"x": 3}),
        ("x^3-6*x^2+11*x x", (6, 2), None, {"x": 2}),
    ],
)
def test_what_can_be_solved_is_solved(contract, shape, given, found):
    result = Contract(contract).check(shape, given)
    assert dict(result) == found
    assert result


@pytest.mark.parametrize(
    ("contract", "shape", "given"),
    [
        ("b c", (2, 3, 4), None),
        ("b ... c", (2,), None),
        ("3", (4,), None),
        ("b b", (2, 3), None),
        ("h*p", (13,), {"p": 4}),
        ("h*p", (13,), {"p": 0}),
        ("h+p", (3,), {"p": 5}),
        ("z^3", (26,), None),
        ("x^0", (2,), None),
        ("x*x-4*x+3", (0,), None),
        ("h*p", (12,), None),
        ("a+b a-b", (7, 4), None),
        ("a+b a+b", (7, 8), None),
        ("a+b a-b", (3, 5), None),
        ("n", (3,), {"n": 4}),
        ("n=_", (3,), {"n": 4}),
        ("x^2", (9,), {"x": 4}),
        ("a*b", (3,), {"a": 2**40, "b": 2**40}),
        ("-x", (5,), None),
    ],
)
def test_a_mismatch_raises_and_trying_does_not(contract, shape, given):
    contract = Contract(contract)
    with pytest.raises(ContractError):
        contract.check(shape, given)
    with pytest.raises(ContractError):
        contract.unpack(contract.names, shape, given)
    assert contract.try_check(shape, given) is None
    assert contract.try_unpack(contract.names, shape, given) is None


def test_trying_returns_what_the_others_do():
    assert NINE.try_check(SHAPE, GIVEN) == NINE.check(SHAPE, GIVEN)
    assert NINE.try_unpack("h w", SHAPE, GIVEN) == (3, 2)
    assert bool(Contract("_ 3").try_check((5, 3)))


def test_a_name_the_shape_does_not_determine():
    contract = Contract("h*p")
    assert dict(contract.check((0,), {"p": 0})) == {"p": 0}
    assert contract.try_unpack("h", (0,), {"p": 0}) is None
    with pytest.raises(ContractError, match="does not determine `h`"):
        contract.unpack("h", (0,), {"p": 0})


def test_anything_with_a_shape_will_do():
    contract = Contract("a b")

    class Lookalike:
        shape = (2, 3)

    for thing in (
        np.zeros((2, 3)),
        torch.zeros(2, 3),
        torch.zeros(2, 3).shape,
        [2, 3],
        (np.int64(2), np.uint8(3)),
        Lookalike(),
    ):
        assert contract.unpack("a b", thing) == (2, 3)
        assert contract.check(thing, {"a": np.int32(2)}) == {"a": 2, "b": 3}


@pytest.mark.parametrize("thing", [3, 3.5, None, "ab", {1: 2}, (2.5, 3), (-1, 3), ("2", 3)])
def test_what_is_no_shape_is_refused_by_name(thing):
    with pytest.raises(ArgumentError) as caught:
        Contract("a b").check(thing)
    assert repr(thing) in str(caught.value)


@pytest.mark.parametrize(
    "bindings", [{"a": 2.5}, {"a": "2"}, 3, [1, 2], {"a": None}, {1: 4}, {None: 4}]
)
def test_invalid_bindings_are_refused(bindings):
    with pytest.raises(ArgumentError, match="bindings are names with whole numbers"):
        Contract("a b").check((2, 3), bindings)


def test_bindings_may_be_pairs_or_any_mapping():
    from types import MappingProxyType

    for given in ([("p", 4)], MappingProxyType({"p": 4}), {"p": np.int64(4)}, {"p": True}):
        p = dict(given)["p"]
        assert Contract("h*p").check((12,), given)["h"] == 12 // int(p)


def test_the_result_feeds_the_next_check():
    env = Contract("b (h p)").check((2, 12), {"p": 4})
    env = Contract("b c").check((2, 7), env)
    assert env == {"b": 2, "h": 3, "p": 4, "c": 7}
    with pytest.raises(ContractError, match="`b` is 2, but this size is 3"):
        Contract("b").check((3,), env)


def test_the_result_behaves_as_a_dict():
    found = Contract("b c").check((2, 3))
    assert isinstance(found, MutableMapping)
    assert found["c"] == 3
    with pytest.raises(KeyError):
        found["d"]
    assert (len(found), list(found), "b" in found, "d" in found) == (2, ["b", "c"], True, False)
    assert (dict(found), {**found}) == ({"b": 2, "c": 3}, {"b": 2, "c": 3})
    assert found.get("d", 9) == 9
    assert sorted(found.items()) == [("b", 2), ("c", 3)]
    assert repr(found) == "{'b': 2, 'c': 3}"
    assert json.dumps(dict(found)) == '{"b": 2, "c": 3}'
    assert pickle.loads(pickle.dumps(found)) == {"b": 2, "c": 3}
    found["d"] = 4
    del found["b"]
    assert found == {"c": 3, "d": 4}
    assert found["d"] == 4
    with pytest.raises(KeyError):
        found["b"]
    with pytest.raises(TypeError):
        hash(found)
    assert found | {"e": 5} == {"c": 3, "d": 4, "e": 5}
    assert {"e": 5} | found == {"e": 5, "c": 3, "d": 4}
    assert pickle.loads(pickle.dumps(Contract("_").check((1,))))


def test_a_changed_result_is_what_the_next_check_sees():
    found = Contract("b c").check((2, 3))
    found["b"] = 5
    assert Contract("b c").try_check((2, 3), found) is None
    assert Contract("b c").check((5, 3), found) == {"b": 5, "c": 3}


def test_an_unknown_key_is_an_error_also_when_trying():
    for call in (NINE.unpack, NINE.try_unpack):
        with pytest.raises(ContractError, match=r"`hh` is not a name.*did you mean `h`"):
            call("b hh", SHAPE, GIVEN)


def test_contracts_written_in_place():
    assert assert_shape("b h w 3", (8, 32, 30, 3))["w"] == 30
    assert assert_shape(NINE, SHAPE, GIVEN)["z"] == 3
    assert unpack_shape("b (h p) (w p) c", (2, 12, 8, 3), {"p": 4}) == (2, 3, 2, 3)
    assert unpack_shape("b_nw n=ws^2 c", (6, 16, 3)) == (6, 16, 3)
    assert unpack_shape("b _ b", (2, 5, 2)) == (2,)
    with pytest.raises(ContractError):
        assert_shape("b h w 3", (8, 32, 30, 4))
    with pytest.raises(ContractError):
        unpack_shape("b h", (8, 32, 30, 4))


def test_a_shape_that_uses_the_same_contract_while_it_is_read():
    contract = Contract("a b c d")

    asking = []

    class Nosy:
        @property
        def shape(self):
            if not asking:
                asking.append(True)
                contract.unpack(("d", "c", "b", "a") * 8, Nosy())
                contract.unpack("b", (5, 6, 7, 8))
                asking.clear()
            return (1, 2, 3, 4)

    for _ in range(100):
        assert contract.unpack(("a", "b"), Nosy()) == (1, 2)


def test_an_error_while_reading_a_shape_is_the_users_own():
    class Broken:
        @property
        def shape(self):
            raise KeyboardInterrupt

    for call in (Contract("a").check, Contract("a").try_check):
        with pytest.raises(KeyboardInterrupt):
            call(Broken())


def test_keys_with_destructors():
    contract = Contract("a b c")

    class Haunted(str):
        def __del__(self):
            contract.unpack(("c", "b"), (7, 8, 9))

    contract.unpack((Haunted("a"), Haunted("b")), (1, 2, 3))
    assert contract.unpack("a b c", (1, 2, 3)) == (1, 2, 3)


def test_threads_may_share_a_contract():
    contract = Contract("a b c")

    class Slow:
        def __init__(self, *sizes):
            self.sizes = sizes

        @property
        def shape(self):
            return (*self.sizes,)

    def work(seed):
        for i in range(2000):
            a = seed + i % 7
            if i % 2:
                assert contract.unpack("c a", Slow(a, 2, 3)) == (3, a)
            else:
                assert contract.unpack(("a", "b", "c"), Slow(a, a, a)) == (a, a, a)

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))


@pytest.mark.parametrize("text", [None, 5, b"a", ["a"], Contract("a")])
def test_what_is_no_text_is_no_contract(text):
    with pytest.raises(ArgumentError, match="a contract is written as text"):
        Contract(text)


@pytest.mark.parametrize("keys", [None, 5, b"a", ["a", 5]])
def test_invalid_keys(keys):
    with pytest.raises(ArgumentError, match="keys are names"):
        Contract("a b").unpack(keys, (1, 2))


def test_numbers_too_long_to_print_are_still_explained():
    with pytest.raises(ContractError, match="a number of 21,261 bits"):
        Contract("x^64").check((5,), {"x": 10**100})


@pytest.mark.parametrize("ask", ["check", "try_check", "unpack", "try_unpack"])
def test_given_sizes_are_zero_or_more(ask: str):
    asked = getattr(Contract("a+b"), ask)
    keys = ("a b",) if "unpack" in ask else ()
    for bindings in (
        {"a": -1},
        [("a", -1)],
        {"other": -1},
        Contract("a").check((1,)) | {"a": -1},
    ):
        with pytest.raises(
            ArgumentError, match=r"a size cannot be negative, got `(a|other)` = -1"
        ):
            asked(*keys, (3,), bindings)
    assert asked(*keys, (3,), {"a": 0}) is not None
    with pytest.raises(ArgumentError, match="a size cannot be negative"):
        unpack_shape("a+b", (3,), {"a": -1})
