"""The tokens of a path expression."""

import re
from dataclasses import dataclass
from typing import NoReturn

from hotgrid.errors import ArgumentError

_PATTERN = re.compile(
    r"""\s*(?:
      (?P<number>\d+(?:\.\d*)?|\.\d+)
    | (?P<string>"[^"]*"|'[^']*')
    | (?P<name>[^\W\d][\w.\-]*)
    | (?P<sign>//|::|\.\.|!=|<=|>=|[/|+\-=<>()\[\]@,.*])
    )""",
    re.VERBOSE,
)
# After one of these, or at the beginning, `*` and the names below do not join two values.
_OPENERS = {"@", "::", "(", "[", ",", "/", "//", "|", "+", "-", "=", "!=", "<", "<=", ">", ">="}
_NAMED_OPERATORS = {"and", "or", "div", "mod"}


@dataclass(frozen=True, slots=True)
class Token:
    """A token: its kind (`number`, `string`, `name`, `sign`, `operator`, `end`) and place."""

    kind: str
    text: str
    place: int


def tokens_of(text: str) -> list[Token]:
    """Split an expression; the last token is of kind `end`.

    Raises:
        ArgumentError: A character cannot begin a token.
    """
    tokens: list[Token] = []
    place = 0
    while text[place:].strip():
        found = _PATTERN.match(text, place)
        if found is None or found.lastgroup is None:
            at = place + len(text[place:]) - len(text[place:].lstrip())
            what = "this quote is not closed" if text[at] in "\"'" else "no token starts here"
            fail(text, at, what)
        kind, place = found.lastgroup, found.end()
        said = found[kind]
        previous = tokens[-1] if tokens else None
        joins = previous and previous.kind != "operator" and previous.text not in _OPENERS
        if previous and previous.kind == "string":
            joins = True
        if joins and (said == "*" or (kind == "name" and said in _NAMED_OPERATORS)):
            kind = "operator"
        tokens.append(Token(kind, said, found.start(found.lastgroup)))
    return [*tokens, Token("end", "", len(text))]


def fail(text: str, place: int, problem: str, way_out: str = "") -> NoReturn:
    """Raise the error of an expression, with a caret under the place."""
    line = text.replace("\n", " ")
    said = f"`{text}` is not a path expression: {problem}\n  {line}\n  {' ' * place}^"
    raise ArgumentError(said + (f"\n{way_out}" if way_out else ""))
