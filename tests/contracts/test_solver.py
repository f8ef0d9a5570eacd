"""The solver against brute force, and the native matcher against the solver."""

import itertools
import math

import pytest
from hypothesis import given, strategies as st

from hotgrid import _native
from hotgrid.contracts import Contract, ContractError
from hotgrid.contracts._expression import (
    Expression,
    Integer,
    Name,
    Negation,
    Power,
    Product,
    Sum,
    names_in,
    polynomial,
)
from hotgrid.contracts._matcher import native_matcher
from hotgrid.contracts._roots import whole_power_root, whole_roots

NAMES = ("a", "b", "c")
LARGEST = 6


def value(expression: Expression, sizes: dict[str, int]) -> int:
    """Evaluate the tree itself: a second opinion on the polynomial."""
    match expression:
        case Name(name):
            return sizes[name]
        case Integer(number):
            return number
        case Negation(inner):
            return -value(inner, sizes)
        case Sum(parts):
            return sum(value(part, sizes) for part in parts)
        case Product(parts):
            product = 1
            for part in parts:
                product *= value(part, sizes)
            return product
        case Power(base, exponent):
            return value(base, sizes) ** exponent


expressions = st.recursive(
    st.sampled_from([Name(name) for name in NAMES] * 2 + [Integer(n) for n in range(4)]),
    lambda inner: st.one_of(
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: Sum(tuple(parts))),
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: Product(tuple(parts))),
        inner.map(Negation),
        st.builds(Power, inner, st.integers(0, 3)),
    ),
    max_leaves=5,
)
sizes = st.fixed_dictionaries({name: st.integers(0, LARGEST) for name in NAMES})


@given(expressions, sizes)
def test_the_polynomial_has_the_value_of_the_tree(expression, assignment):
    total = 0
    for factor, monomial in polynomial(expression):
        total += factor * math.prod(assignment[name] ** exponent for name, exponent in monomial)
    assert total == value(expression, assignment)


@given(st.lists(expressions, min_size=1, max_size=3), sizes, st.sets(st.sampled_from(NAMES)))
def test_check_agrees_with_brute_force(terms, assignment, known):
    shape = tuple(value(term, assignment) for term in terms)
    if min(shape) < 0:
        return
    contract = Contract(", ".join(map(str, terms)))
    given_sizes = {name: assignment[name] for name in known}
    names = [n for n in dict.fromkeys(n for t in terms for n in names_in(t)) if n not in known]
    solutions = [
        trial
        for values in itertools.product(range(LARGEST + 1), repeat=len(names))
        if all(
            value(term, trial := {**given_sizes, **dict(zip(names, values, strict=True))})
            == size
            for term, size in zip(terms, shape, strict=True)
        )
    ]
    found = contract.try_check(shape, given_sizes)
    if found is not None:
        # Whatever it bound, every solution agrees with; and there is one.
        assert solutions
        for solution in solutions:
            assert found.items() <= {**given_sizes, **solution}.items()


@given(expressions, st.integers(0, LARGEST), sizes)
def test_one_equation_with_one_unknown_is_always_solved(expression, answer, assignment):
    name = NAMES[0]
    given_sizes = {other: assignment[other] for other in NAMES[1:]}
    size = value(expression, {**given_sizes, name: answer})
    if size < 0:
        return
    # These polynomials have small coefficients, so all their roots are far below 200.
    solutions = [x for x in range(200) if value(expression, {**given_sizes, name: x}) == size]
    found = Contract(str(expression)).try_check((size,), given_sizes)
    if len(solutions) == 1:
        assert found is not None
        assert found[name] == answer
    elif len(solutions) == 200:
        assert found is not None
        assert name not in found
    else:
        assert found is None


@given(st.lists(expressions, min_size=1, max_size=3), sizes, st.sets(st.sampled_from(NAMES)))
def test_a_wrong_size_never_passes(terms, assignment, known):
    shape = tuple(value(term, assignment) for term in terms)
    if min(shape) < 0:
        return
    contract = Contract(", ".join(map(str, terms)))
    for place in range(len(shape)):
        wrong = (*shape[:place], shape[place] + 1, *shape[place + 1 :])
        found = contract.try_check(wrong, {name: assignment[name] for name in known})
        if found is None:
            continue
        full = {name: found.get(name, 0) for name in NAMES}
        assert all(value(t, full) == size for t, size in zip(terms, wrong, strict=True))


@given(
    st.lists(expressions, min_size=1, max_size=4),
    st.lists(st.integers(0, 100) | st.integers(0, 2**63 - 1), min_size=0, max_size=5),
    st.dictionaries(st.sampled_from((*NAMES, "other")), st.integers(0, 2**40), max_size=3),
    st.booleans(),
)
def test_the_native_matcher_agrees_with_the_solver(terms, shape, known, rest):
    assert _native.available()
    text = [str(term) for term in terms]
    contract = Contract(", ".join([*text[:1], "...", *text[1:]] if rest else text))
    matcher = contract._matcher
    fast = native_matcher(matcher).try_match(known, tuple(shape))
    slow = matcher.decide(known, tuple(shape))
    if fast is not None:
        assert not isinstance(slow, tuple)
        assert dict(fast) == dict(slow)


@pytest.mark.parametrize(
    ("text", "shape", "known"),
    [
        ("_, b, ..., h*p, w*p, z^3, c", (12, 2, 1, 2, 3, 12, 8, 27, 5), {"p": 4, "c": 5}),
        ("b (h p) (w p) c", (2, 12, 8, 3), {"p": 4}),
        ("h*p p", (12, 4), None),
        ("n=2*w-1", (7,), None),
        ("p*p", (49,), None),
    ],
)
def test_common_contracts_are_settled_natively(text, shape, known):
    assert native_matcher(Contract(text)._matcher).try_match(known, shape) is not None


def test_contracts_beyond_the_native_matcher_still_work():
    many = [f"n{i}" for i in range(70)]
    shape = tuple(range(70))
    assert Contract(" ".join(many)).unpack("n0 n69", shape) == (0, 69)

    assert Contract("a-b").check((3,), {"b": 2**70})["a"] == 2**70 + 3


@given(st.lists(st.integers(-9, 9), min_size=1, max_size=4), st.integers(0, 9))
def test_every_whole_root_is_found(other_roots, root):
    # (x - root) * (x - r1) * ..., expanded.
    coefficients = [1]
    for r in [root, *other_roots]:
        coefficients = [
            (coefficients[i - 1] if i else 0)
            - r * (coefficients[i] if i < len(coefficients) else 0)
            for i in range(len(coefficients) + 1)
        ]
    assert whole_roots(coefficients) == sorted({r for r in [root, *other_roots] if r >= 0})


@given(st.lists(st.integers(-30, 30), min_size=1, max_size=5), st.integers(1, 9))
def test_whole_roots_against_trying_them_all(lower, highest):
    coefficients = [*lower, highest]
    brute = [x for x in range(40) if sum(c * x**i for i, c in enumerate(coefficients)) == 0]
    assert whole_roots(coefficients) == brute


@given(st.integers(0, 10**40), st.integers(1, 9))
def test_power_roots(power, degree):
    root = whole_power_root(power, degree)
    assert root**degree <= power < (root + 1) ** degree


def test_a_mismatch_names_the_first_failing_dimension():
    with pytest.raises(ContractError) as caught:
        Contract("a 3 a").check((2, 4, 5))
    assert caught.value.mismatch is not None
    assert caught.value.mismatch.dimension == 1
