"""Text to contract terms. Errors show a caret under the place.

    contract := "[" terms "]" | terms
    terms    := term {"," term} [","]        separated by commas, or
              | term {term}                  by blanks, as einops writes them
    term     := [label "="] ( "_" | "..." | expr )
    expr     := prod {("+" | "-") prod}
    prod     := power {"*" power}            inside parentheses also {power}: (h p) is h*p
    power    := factor [("^" | "**") integer]
    factor   := name | integer | "(" expr ")" | "()" | ("+" | "-") factor

A sign binds tighter than a power: -x^3 is (-x)^3. Names may be quoted.
"""

import re
from dataclasses import dataclass
from typing import Literal, NoReturn

from hotgrid.errors import ContractSyntaxError

from ._expression import (
    LARGEST_EXPONENT,
    Expression,
    Integer,
    Name,
    Negation,
    Polynomial,
    Power,
    Product,
    Sum,
    TooLargeError,
    polynomial,
)

_TOKEN = re.compile(
    r"""(?P<blank>\s+)
      | (?P<dots>\.\.\.)
      | (?P<integer>[0-9]+)
      | (?P<name>[^\W\d]\w*)
      | (?P<quoted>"[^"]*"|'[^']*')
      | (?P<sign>\*\*|[-+*^=,()\[\]])""",
    re.VERBOSE,
)


@dataclass(frozen=True)
class Term:
    """One entry of a contract: a size expression, `_` or `...`, perhaps labelled."""

    kind: Literal["size", "any", "rest"]
    expression: Expression | None = None
    terms: Polynomial = ()
    label: str | None = None

    def __str__(self) -> str:
        text = {"any": "_", "rest": "..."}.get(self.kind, str(self.expression))
        return f"{self.label}={text}" if self.label else text


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


def parse(text: str) -> tuple[Term, ...]:
    """The terms of a contract.

    Raises:
        ContractSyntaxError: the text is not a contract; shows the place.
    """
    return _Parser(text).contract()


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = self._tokens()
        self.at = 0
        self.depth = 0
        self.level = 0

    def contract(self) -> tuple[Term, ...]:
        bracket = self.here if self.accept("[") else None
        commas = any(token.text == "," for token in self.tokens)
        terms: list[Term] = []
        while self.here.text not in ("]", ""):
            start = self.here
            terms.append(self.term())
            if terms[-1].kind == "rest" and sum(t.kind == "rest" for t in terms) > 1:
                self.fail("a contract can have only one `...`", start)
            if not self.accept(",") and commas and self.here.text not in ("]", ""):
                before = self.text[start.start : self.tokens[self.at - 1].end]
                self.fail(
                    f"this contract separates its terms by commas, and there is none here; "
                    f"write `{before}, {self.here.text}` for two dimensions "
                    f"or `{before}*{self.here.text}` for a product",
                    self.here,
                )
        if bracket and not self.accept("]"):
            self.fail("the bracket at the start is never closed", self.here)
        if self.here.text:
            self.fail(f"`{self.here.text}` closes nothing", self.here)
        return tuple(terms)

    def term(self) -> Term:
        label = None
        if self.here.kind in ("name", "quoted") and self.next.text == "=":
            label = self.name(self.here)
            self.at += 2
        start = self.here
        if self.accept("_"):
            self.alone(start)
            return Term("any", label=label)
        if self.here.kind == "dots":
            if label:
                self.fail("`...` stands for many sizes, so it cannot have a label", start)
            self.at += 1
            self.alone(start)
            return Term("rest")
        expression = self.expression()
        try:
            return Term("size", expression, polynomial(expression), label)
        except TooLargeError:
            self.fail(
                "this expression multiplies out to too many products, or to too high powers",
                start,
            )

    def alone(self, token: _Token) -> None:
        if self.here.text in _OPERATORS:
            self.fail(_ALONE[token.text], token)

    def expression(self) -> Expression:
        parts = [self.product()]
        while self.here.text in ("+", "-"):
            negative = self.here.text == "-"
            self.at += 1
            part = self.product()
            parts.append(Negation(part) if negative else part)
        return parts[0] if len(parts) == 1 else Sum(tuple(parts))

    def product(self) -> Expression:
        parts = [self.power()]
        while self.accept("*") or (self.depth and self.starts_a_factor()):
            parts.append(self.power())
        return parts[0] if len(parts) == 1 else Product(tuple(parts))

    def starts_a_factor(self) -> bool:
        return self.here.kind in _FACTORS or self.here.text == "("

    def power(self) -> Expression:
        base = self.factor()
        if not (self.accept("^") or self.accept("**")):
            return base
        token = self.here
        if token.kind != "integer":
            self.fail("an exponent is a plain number, as in `z^3`", token)
        if len(token.text) > 9 or int(token.text) > LARGEST_EXPONENT:
            self.fail(f"an exponent is at most {LARGEST_EXPONENT}", token)
        self.at += 1
        return Power(base, int(token.text))

    def factor(self) -> Expression:
        token = self.here
        self.level += 1
        if self.level > _DEEPEST:
            self.fail("this is nested too deeply", token)
        try:
            return self.one_factor(token)
        finally:
            self.level -= 1

    def one_factor(self, token: _Token) -> Expression:
        if self.accept("+"):
            return self.factor()
        if self.accept("-"):
            return Negation(self.factor())
        if self.accept("("):
            return self.parenthesis(token)
        if token.kind == "integer":
            if len(token.text) > 18:
                self.fail("no dimension is that large", token)
            self.at += 1
            return Integer(int(token.text))
        if token.kind not in _FACTORS or token.text == "_":
            self.fail(self.missing(token), token)
        self.at += 1
        return Name(self.name(token))

    def parenthesis(self, opening: _Token) -> Expression:
        if self.accept(")"):
            return Integer(1)
        self.depth += 1
        inner = self.expression()
        if not self.accept(")"):
            if not self.here.text or self.here.text == "]":
                self.fail("this parenthesis is never closed", opening)
            self.fail(f"`{self.here.text}` cannot be inside parentheses", self.here)
        self.depth -= 1
        return inner

    def missing(self, token: _Token) -> str:
        if token.text in _ALONE:
            return _ALONE[token.text]
        before = self.tokens[self.at - 1].text if self.at else ""
        if before in _OPERATORS:
            return f"nothing follows `{before}`"
        if before == "=":
            return "nothing follows the label"
        return f"a name, a number, `_` or `...` belongs here, not `{token.text}`"

    def name(self, token: _Token) -> str:
        name = token.text.strip("'\"") if token.kind == "quoted" else token.text
        if not name.isidentifier() or name == "_":
            self.fail("a name is a word of letters, digits and underscores", token)
        return name

    @property
    def here(self) -> _Token:
        return self.tokens[self.at]

    @property
    def next(self) -> _Token:
        return self.tokens[min(self.at + 1, len(self.tokens) - 1)]

    def accept(self, text: str) -> bool:
        found = self.here.text == text
        self.at += found
        return found

    def _tokens(self) -> list[_Token]:
        tokens: list[_Token] = []
        at = 0
        while at < len(self.text):
            found = _TOKEN.match(self.text, at)
            if not found:
                self.fail(f"`{self.text[at]}` means nothing here", _Token("", " ", at))
            token = _Token(found.lastgroup or "", found.group(), at)
            before = tokens[-1] if tokens else token
            if before.kind == "integer" and token.kind == "name" and before.end == at:
                self.fail(f"write `{before.text}*{token.text}` for a product", token)
            if token.text == "(" and before.kind in _FACTORS and before.end == at:
                self.fail(f"write `{before.text}*(...)` for a product", token)
            if token.kind != "blank":
                tokens.append(token)
            at = token.end
        return [*tokens, _Token("end", "", len(self.text))]

    def fail(self, reason: str, token: _Token) -> NoReturn:
        begin = max(0, token.start - _AROUND) if len(self.text) > 2 * _AROUND else 0
        shown = re.sub(r"\s", " ", self.text[begin : begin + 2 * _AROUND])
        before, after = "... " if begin else "", len(self.text) > begin + 2 * _AROUND
        left = len(shown) - (token.start - begin)
        caret = " " * (len(before) + token.start - begin)
        caret += "^" * max(1, min(len(token.text), left))
        shown = f"{before}{shown}{' ...' if after else ''}"
        raise ContractSyntaxError(f"bad contract: {shortened(reason)}\n  {shown}\n  {caret}")


def shortened(text: str) -> str:
    """The beginning and the end of what is too long for a message."""
    if len(text) <= _LONGEST:
        return text
    return f"{text[: _LONGEST // 2]} ... {text[-_LONGEST // 4 :]} ({len(text):,} characters)"


_LONGEST = 1000
_AROUND = 500  # characters of a contract before and after the place of an error


_DEEPEST = 40
_FACTORS = ("name", "quoted", "integer")
_OPERATORS = ("+", "-", "*", "^", "**")
_ALONE = {
    "_": "`_` is a whole dimension of its own and cannot be part of an expression",
    "...": "`...` is a term of its own and cannot be part of an expression",
}
