"""The exceptions are those of the docstring, with the expected base classes."""

import pickle
import re

import pytest

from hotgrid import errors

EXPECTED_BASES = {
    "ContractError": ValueError,
    "ContractSyntaxError": ValueError,
    "ConfigError": ValueError,
    "ArgumentError": ValueError,
    "DimensionError": IndexError,
    "UnstableError": ArithmeticError,
    "KernelError": RuntimeError,
    "StoreError": OSError,
    "DamagedError": OSError,
    "CommunicationError": ConnectionError,
    "MissingPartError": ImportError,
}


def drawn() -> dict[str, str]:
    """Child and parent of every line of the tree in the docstring."""
    parents: list[str] = []
    tree = {}
    for line in (errors.__doc__ or "").splitlines():
        found = re.match(r"    ([│ ]*)(?:├── |└── )?(\w+Error)\b", line)
        if found:
            depth = 0 if "── " not in line else 1 + len(found.group(1)) // 4
            parents = [*parents[:depth], found.group(2)]
            if depth:
                tree[found.group(2)] = parents[depth - 1]
    return tree


def test_the_drawing_matches_the_state():
    tree = drawn()
    classes = {
        name: value
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, Exception)
    }
    assert tree.keys() == classes.keys() - {"HotgridError"}
    for child, parent in tree.items():
        assert classes[child].__bases__[0] is classes[parent]


@pytest.mark.parametrize(("name", "builtin"), EXPECTED_BASES.items())
def test_each_is_also_the_builtin_one_would_catch(name, builtin):
    kind = getattr(errors, name)
    assert issubclass(kind, builtin)
    assert issubclass(kind, errors.HotgridError)
    assert str(kind("what is wrong")) == "what is wrong"


def test_every_expected_base_is_listed():
    assert EXPECTED_BASES.keys() == drawn().keys()


@pytest.mark.parametrize("name", ["HotgridError", "ShapeMismatch", *EXPECTED_BASES])
def test_tracebacks_name_the_public_function_and_pickles_find_it(name):
    kind = getattr(errors, name)
    assert f"{kind.__module__}.{kind.__qualname__}" == f"hotgrid.errors.{name}"
    copy = pickle.loads(pickle.dumps(kind("what is wrong")))
    assert type(copy) is kind


def test_what_became_unstable_can_be_read_by_programs_also_from_another_process():
    error = errors.UnstableError("it blew up", step=7, cell=(1, 2), cause="too fast")
    other = pickle.loads(pickle.dumps(error))
    assert (str(other), other.step, other.cell, other.cause) == (
        "it blew up", 7, (1, 2), "too fast",
    )  # fmt: skip
    bare = errors.UnstableError("it blew up")
    assert (bare.step, bare.cell, bare.cause) == (None, None, "")
