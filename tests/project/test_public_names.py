"""Every public name explains itself: a docstring, annotations, examples that run."""

import ast
import doctest
import importlib
import inspect
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch

from hotgrid.config import Config, use

from .packages import DOCS, PACKAGES, SOURCE
from .test_exports import public_names

NAMES = [
    (package, name)
    for package in PACKAGES
    for name in public_names(package)
    if f"{package}.{name}" not in PACKAGES
]
EXAMPLES = [path for path in sorted(SOURCE.rglob("*.py")) if ">>>" in path.read_text("utf-8")]
PAGES = [page for page in sorted(DOCS.rglob("*.md")) if ">>>" in page.read_text("utf-8")]


def resolved(package: str, name: str) -> Any:
    return getattr(importlib.import_module(f"hotgrid.{package}"), name)


def callables(owner: Any) -> Iterator[Any]:
    """A function, or what a class defines for its users: methods, properties, `__init__`."""
    members = vars(owner) if inspect.isclass(owner) else {"": owner}
    for name, member in members.items():
        if name.startswith("_") and name not in ("__init__", "__call__"):
            continue
        plain = member.fget if isinstance(member, property) else member
        plain = getattr(plain, "__func__", plain)
        # What dataclasses and protocols generate has no line to write an annotation on.
        generated = inspect.isfunction(plain) and (
            plain.__code__.co_filename.startswith("<") or plain.__module__ == "typing"
        )
        if inspect.isfunction(plain) and not generated:
            yield plain


def test_two_things_never_share_a_name():
    places: dict[str, dict[int, list[str]]] = {}
    for package, name in NAMES:
        same = places.setdefault(name, {})
        same.setdefault(id(resolved(package, name)), []).append(package)
    shared = {name: [*same.values()] for name, same in places.items() if len(same) > 1}
    assert not shared, f"rename all but one of each: {shared}"


@cache
def documented_data() -> set[str]:
    """Constants and type aliases that have a docstring on the line below."""
    found: set[str] = set()
    for path in SOURCE.rglob("*.py"):
        for line, below in pairwise(ast.parse(path.read_text("utf-8")).body):
            if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
                targets = getattr(line, "targets", [getattr(line, "target", None)])
                found |= {target.id for target in targets if isinstance(target, ast.Name)}
    return found


@pytest.mark.parametrize(("package", "name"), NAMES)
def test_it_has_a_docstring(package: str, name: str):
    value = resolved(package, name)
    if not (inspect.isclass(value) or inspect.isroutine(value)):
        assert name in documented_data(), f"write a docstring below `{name} = ...`"
        return
    text = value.__doc__ or ""
    # A dataclass without a docstring gets its signature as one.
    assert text and not text.startswith(f"{name}("), f"no docstring: hotgrid.{package}.{name}"
    bare = [
        each.__qualname__
        for each in callables(value)
        if not each.__doc__ and not each.__name__.startswith("__")
    ]
    assert not bare, f"no docstring: {bare}"


@pytest.mark.parametrize(("package", "name"), NAMES)
def test_it_is_annotated(package: str, name: str):
    for each in callables(resolved(package, name)):
        signature = inspect.signature(each)
        bare = [
            parameter.name
            for parameter in signature.parameters.values()
            if parameter.annotation is parameter.empty and parameter.name not in ("self", "cls")
        ]
        assert not bare, f"{each.__qualname__} does not say what {bare} may be"
        assert signature.return_annotation is not signature.empty, (
            f"{each.__qualname__} does not say what it returns"
        )


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_the_examples_in_docstrings_run(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    parts = path.relative_to(SOURCE).with_suffix("").parts
    module = importlib.import_module(".".join(["hotgrid", *parts]))
    # An example may use torch and every public name of the packages that its module is in.
    names: dict[str, Any] = {}
    for depth in range(1, len(parts)):
        package = importlib.import_module(".".join(["hotgrid", *parts[:depth]]))
        names |= {name: x for name, x in vars(package).items() if not name.startswith("_")}
    with use(Config()):
        assert doctest.testmod(module, extraglobs={"torch": torch, **names}).failed == 0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_the_examples_on_docs_pages_run(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    # The closing fence of a code block would read as expected output.
    text = "\n".join(
        "" if line.startswith("```") else line for line in page.read_text("utf-8").splitlines()
    )
    examples = doctest.DocTestParser().get_doctest(text, {}, page.name, str(page), 0)
    with use(Config()):
        assert doctest.DocTestRunner().run(examples).failed == 0
