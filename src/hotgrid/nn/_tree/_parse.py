"""The parser of path expressions, which are a subset of XPath 1.0.

    expression  = or-expression, with the precedence of XPath: or, and, = !=, < <= > >=,
                  + -, * div mod, unary -, |
    path        = ["/" | "//"] step { ("/" | "//") step }, or a filter followed by steps
    step        = [axis "::"] (name | "*" | "node()") {predicate} | "@" name | "." | ".."
    filter      = ("(" expression ")" | string | number | call) {predicate}
    predicate   = "[" expression "]"

`ends-with` and `matches` are those of XPath 2.0.
"""

from dataclasses import dataclass, replace
from functools import lru_cache

from hotgrid.errors import near

from ._axes import AXES
from ._functions import FUNCTIONS
from ._node import ATTRIBUTES
from ._tokens import Token, fail, tokens_of


@dataclass(frozen=True, slots=True)
class Literal:
    """A string or a number."""

    value: str | float


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a function."""

    name: str
    arguments: tuple["Expression", ...]


@dataclass(frozen=True, slots=True)
class Binary:
    """Two expressions and the operator between them."""

    operator: str
    left: "Expression"
    right: "Expression"


@dataclass(frozen=True, slots=True)
class Negative:
    """Minus an expression."""

    inner: "Expression"


@dataclass(frozen=True, slots=True)
class Step:
    """A step of a path; `end` is where its text ends.

    The test is a name, `*` or `node()`. The axis may be `attribute`.
    """

    axis: str
    test: str
    predicates: tuple["Expression", ...] = ()
    end: int = 0


@dataclass(frozen=True, slots=True)
class Path:
    """Steps from the context, from the document (`absolute`), or from a filter."""

    steps: tuple[Step, ...]
    absolute: bool = False
    start: "Filter | Call | Expression | None" = None


@dataclass(frozen=True, slots=True)
class Filter:
    """An expression in parentheses, with predicates over its whole result."""

    inner: "Expression"
    predicates: tuple["Expression", ...] = ()


Expression = Literal | Call | Binary | Negative | Path | Filter

_LEVELS = (
    {"or"},
    {"and"},
    {"=", "!="},
    {"<", "<=", ">", ">="},
    {"+", "-"},
    {"*", "div", "mod"},
)


@lru_cache(maxsize=1024)
def parse(text: str) -> Expression:
    """Read an expression.

    Raises:
        ArgumentError: The text is not one; the message shows where and what was expected.
    """
    reader = _Reader(text)
    try:
        found = reader.expression()
    except RecursionError:
        fail(text, reader.now.place, "it is nested too deeply")
    if reader.now.kind != "end":
        reader.unexpected("the end")
    return found


class _Reader:
    """A recursive descent over the tokens."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tokens_of(text)
        self.place = 0

    @property
    def now(self) -> Token:
        return self.tokens[self.place]

    def sees(self, *texts: str) -> bool:
        return self.now.kind in ("sign", "operator") and self.now.text in texts

    def takes(self, *texts: str) -> str | None:
        if not self.sees(*texts):
            return None
        self.place += 1
        return self.tokens[self.place - 1].text

    def needs(self, text: str) -> None:
        if self.takes(text) is None:
            self.unexpected(f"`{text}`")

    def unexpected(self, wanted: str) -> None:
        found = f"`{self.now.text}`" if self.now.text else "the end"
        way_out = ""
        if self.now.text == ",":
            way_out = "Join conditions with `and`, or write one after the other: `[...][...]`."
        fail(self.text, self.now.place, f"expected {wanted}, found {found}", way_out)

    def expression(self, level: int = 0) -> Expression:
        if level == len(_LEVELS):
            return self.unary()
        left = self.expression(level + 1)
        while self.now.kind in ("sign", "operator") and self.now.text in _LEVELS[level]:
            operator = self.now.text
            self.place += 1
            left = Binary(operator, left, self.expression(level + 1))
        return left

    def unary(self) -> Expression:
        if self.takes("-"):
            return Negative(self.unary())
        left = self.path()
        while self.takes("|"):
            left = Binary("|", left, self.path())
        return left

    def path(self) -> Expression:
        if self.begins_filter():
            start = self.filter()
            if not self.sees("/", "//"):
                return start
            return Path(self.more_steps(()), start=start)
        if self.takes("/"):
            if not self.begins_step():
                return Path((), absolute=True)
            return Path(self.more_steps(self.step()), absolute=True)
        if self.sees("//"):
            return Path(self.more_steps(()), absolute=True)
        return Path(self.more_steps(self.step()))

    def more_steps(self, steps: tuple[Step, ...]) -> tuple[Step, ...]:
        while slash := self.takes("/", "//"):
            if steps and steps[-1].axis == "attribute":
                fail(self.text, self.now.place, "a path cannot continue from an attribute")
            steps += self.step(deep=slash == "//")
        return steps

    def begins_filter(self) -> bool:
        token, after = self.now, self.tokens[min(self.place + 1, len(self.tokens) - 1)]
        called = token.kind == "name" and after.text == "(" and token.text != "node"
        return token.kind in ("number", "string") or token.text == "(" or called

    def begins_step(self) -> bool:
        return self.now.kind == "name" or self.sees("*", "@", ".", "..")

    def filter(self) -> Expression:
        token = self.now
        self.place += 1
        inner: Expression
        if token.kind == "number":
            inner = Literal(float(token.text))
        elif token.kind == "string":
            inner = Literal(token.text[1:-1])
        elif token.kind == "name":
            inner = self.call(token)
        else:
            inner = self.expression()
            self.needs(")")
            inner = Filter(inner)
        predicates = self.predicates()
        return Filter(inner, predicates) if predicates else inner

    def call(self, name: Token) -> Call:
        function = FUNCTIONS.get(name.text)
        if function is None:
            hint = near(name.text, FUNCTIONS)
            fail(
                self.text,
                name.place,
                f"there is no function `{name.text}()`{hint}",
                f"There are {', '.join(FUNCTIONS)}.",
            )
        self.needs("(")
        arguments: list[Expression] = []
        if not self.sees(")"):
            arguments.append(self.expression())
            while self.takes(","):
                arguments.append(self.expression())
        self.needs(")")
        if not function.fewest <= len(arguments) <= function.most:
            fail(
                self.text,
                name.place,
                f"`{name.text}` takes {function.takes()}, got {len(arguments)}",
            )
        return Call(name.text, tuple(arguments))

    def predicates(self) -> tuple[Expression, ...]:
        found: list[Expression] = []
        while self.takes("["):
            found.append(self.expression())
            self.needs("]")
        return tuple(found)

    def step(self, *, deep: bool = False) -> tuple[Step, ...]:
        """One step; after `//` two, or one over descendants where that is the same."""
        if self.takes("."):
            step = Step("self", "node()")
        elif self.takes(".."):
            step = Step("parent", "node()")
        elif self.takes("@"):
            step = Step("attribute", self.attribute_name())
        else:
            axis = self.axis()
            if axis == "attribute":
                step = Step(axis, self.attribute_name())
            else:
                step = Step(axis, self.node_test(), self.predicates())
        if step.axis != "attribute" and self.sees("["):
            self.unexpected("`/`")
        end = self.tokens[self.place - 1]
        step = replace(step, end=end.place + len(end.text))
        if not deep:
            return (step,)
        if step.axis == "child" and not any(map(depends_on_position, step.predicates)):
            return (replace(step, axis="descendant"),)
        return (Step("descendant-or-self", "node()", end=step.end), step)

    def axis(self) -> str:
        token, after = self.now, self.tokens[min(self.place + 1, len(self.tokens) - 1)]
        if token.kind != "name" or after.text != "::":
            return "child"
        if token.text not in (*AXES, "attribute"):
            fail(
                self.text,
                token.place,
                f"there is no axis `{token.text}::`{near(token.text, AXES)}",
                f"There are {', '.join((*AXES, 'attribute'))}.",
            )
        self.place += 2
        return token.text

    def node_test(self) -> str:
        if self.takes("*"):
            return "*"
        token = self.now
        if token.kind != "name":
            self.unexpected("the name of a type, `*`, `.`, `..` or `@`")
        self.place += 1
        if self.sees("("):
            if token.text != "node":
                fail(self.text, token.place, f"`{token.text}()` is not a test of this tree")
            self.needs("(")
            self.needs(")")
            return "node()"
        return token.text

    def attribute_name(self) -> str:
        if self.takes("*"):
            return "*"
        token = self.now
        if token.kind != "name":
            self.unexpected("the name of an attribute")
        if token.text not in ATTRIBUTES:
            fail(
                self.text,
                token.place,
                f"there is no attribute `@{token.text}`"
                f"{near(token.text, ATTRIBUTES, '; did you mean `@{}`?')}",
                f"There are {', '.join(f'@{name}' for name in ATTRIBUTES)}.",
            )
        self.place += 1
        return token.text


def is_number(expression: Expression) -> bool:
    """Whether its result is a number, which as a predicate is a position."""
    match expression:
        case Literal(value):
            return isinstance(value, float)
        case Negative():
            return True
        case Call(name):
            return FUNCTIONS[name].gives == "number"
        case Binary(operator):
            return operator in ("+", "-", "*", "div", "mod")
        case Filter(inner, predicates):
            return not predicates and is_number(inner)
        case _:
            return False


def depends_on_position(predicate: Expression) -> bool:
    """Whether a predicate is about the position among the nodes of its step."""
    return is_number(predicate) or _calls_position(predicate)


def _calls_position(expression: Expression) -> bool:
    match expression:
        case Call(name, arguments):
            return name in ("position", "last") or any(map(_calls_position, arguments))
        case Binary(_, left, right):
            return _calls_position(left) or _calls_position(right)
        case Negative(inner) | Filter(inner):
            return _calls_position(inner)
        case Path(start=start) if start is not None:
            return _calls_position(start)
        case _:
            return False
