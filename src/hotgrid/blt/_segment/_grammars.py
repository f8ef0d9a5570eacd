"""Grammars of programming languages, from the wheels of tree-sitter."""

import importlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from hotgrid.errors import MissingPartError

_COMMENTS = frozenset({"comment", "line_comment", "block_comment"})
_BRANCHES = frozenset({"preproc_ifdef", "preproc_if"})


@dataclass(frozen=True)
class Grammar:
    """Where the grammar of a language is, and what its units are.

    Attributes:
        package: The module of its wheel; the wheel has dashes instead of underscores.
        bodies: Nodes whose children are units as well, such as the body of a class.
        blocks: Nodes whose children after the first are, such as a branch of a preprocessor.
        before: Nodes that belong to the unit after them, beside comments.
        function: What in the module returns the grammar.
        extra: Whether `hotgrid[code]` installs it.
    """

    package: str
    bodies: frozenset[str] = frozenset()
    blocks: frozenset[str] = frozenset()
    before: frozenset[str] = frozenset()
    function: str = "language"
    extra: bool = False


def _of(package: str, *bodies: str, **more: Any) -> Grammar:
    return Grammar(f"tree_sitter_{package}", frozenset(bodies), **more)


GRAMMARS: Mapping[str, Grammar] = MappingProxyType(
    {
        "python": _of("python", extra=True),
        "rust": _of(
            "rust", "declaration_list", before=frozenset({"attribute_item"}), extra=True
        ),
        "c": _of("c", "declaration_list", blocks=_BRANCHES, extra=True),
        "javascript": _of("javascript", "class_body", extra=True),
        "cpp": _of("cpp", "declaration_list", "field_declaration_list", blocks=_BRANCHES),
        "go": _of("go"),
        "java": _of("java", "class_body", "interface_body", "enum_body"),
        "typescript": _of("typescript", "class_body", function="language_typescript"),
        "ruby": _of("ruby", "body_statement"),
        "bash": _of("bash"),
        "c_sharp": _of("c_sharp", "declaration_list"),
        "php": _of("php", "declaration_list", function="language_php"),
        "scala": _of("scala", "template_body"),
        "swift": _of("swift", "class_body"),
        "kotlin": _of("kotlin", "class_body"),
        "lua": _of("lua"),
        "julia": _of("julia"),
        "haskell": _of("haskell"),
        "zig": _of("zig"),
    }
)
"""The grammar of each language."""

_PARSERS: dict[str, Any] = {}


def parser_of(language: str) -> Any:
    """The parser of a language; None if its grammar is not installed."""
    if language not in _PARSERS:
        grammar = GRAMMARS[language]
        try:
            tree_sitter = importlib.import_module("tree_sitter")
            made = getattr(importlib.import_module(grammar.package), grammar.function)
            _PARSERS[language] = tree_sitter.Parser(tree_sitter.Language(made()))
        except (ImportError, AttributeError, ValueError):
            return None
    return _PARSERS[language]


def expect_parser(language: str) -> Any:
    """The parser of a language.

    Raises:
        MissingPartError: Its grammar is not installed.
    """
    found = parser_of(language)
    if found is None:
        wheel = GRAMMARS[language].package.replace("_", "-")
        part = "'hotgrid[code]'" if GRAMMARS[language].extra else f"tree-sitter {wheel}"
        raise MissingPartError(
            f"the syntax of {language} needs `{wheel}`: run `pip install {part}`"
        )
    return found


def unit_starts(language: str, data: bytes) -> Iterator[int]:
    """Where units begin: comments and attributes belong to the unit after them.

    Raises:
        MissingPartError: The grammar is not installed.
    """
    grammar = GRAMMARS[language]
    before = _COMMENTS | grammar.before
    # The tree must outlive its nodes.
    tree = expect_parser(language).parse(data)
    waiting: list[list[Any]] = [tree.root_node.named_children]
    while waiting:
        pending = None
        for node in waiting.pop():
            start = node.start_byte if pending is None else pending
            pending = start if node.type in before else None
            if pending is None:
                yield start
                waiting.extend(_members(node, grammar))
        if pending is not None:
            yield pending


def _members(node: Any, grammar: Grammar, depth: int = 2) -> Iterator[list[Any]]:
    """The units inside a unit: of its body, or of that of a class which it exports."""
    children = node.named_children
    if node.type in grammar.blocks:
        yield children[1:]
        return
    for child in children:
        if child.type in grammar.bodies:
            yield child.named_children
        elif depth > 1:
            yield from _members(child, grammar, depth - 1)
