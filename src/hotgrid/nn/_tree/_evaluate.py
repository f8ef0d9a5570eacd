"""From a parsed expression to a function of a node, by the rules of XPath 1.0.

Every expression has a kind that is known before any node is seen (`nodes`, `attributes`,
`number`, `string`, `boolean`), so each is compiled once into plain closures.
"""

import math
import operator
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from hotgrid.errors import ArgumentError

from ._axes import AXES, in_document_order, reached
from ._functions import FUNCTIONS, to_number, to_text, to_truth
from ._node import ATTRIBUTES, NUMBERS, Node
from ._parse import (
    Binary,
    Call,
    Expression,
    Filter,
    Literal,
    Negative,
    Path,
    Step,
    depends_on_position,
    parse,
)
from ._tokens import fail

# A function of a node, its position (from 1) and the number of nodes, as in a predicate.
Value = Callable[[Node, int, int], Any]
Walk = Callable[[Sequence[Node]], Sequence[Node]]


class Compiled(NamedTuple):
    """An expression as a function, the kind of its result, and more for short cuts.

    `own` is the name of the one attribute of the context node that it reads.
    `literal` is the value of a literal.
    """

    kind: str
    value: Value
    own: str = ""
    literal: str | float | None = None


class Attribute(NamedTuple):
    """An attribute of a node, as a member of a set."""

    order: int
    name: str
    text: str


@lru_cache(maxsize=1024)
def nodes_of(text: str) -> Callable[[Node], Sequence[Node]]:
    """Compile an expression that selects nodes, starting from the document.

    Raises:
        ArgumentError: It is not an expression, or its result is not nodes.
    """
    try:
        kind, value, *_ = compiled(parse(text))
    except RecursionError:
        fail(text, 0, "it is nested too deeply")
    if kind == "attributes":
        raise ArgumentError(
            f"`{text}` selects attributes, and only nodes can be selected; "
            "write the attribute as a condition, such as `Param[@rank=2]`"
        )
    if kind != "nodes":
        raise ArgumentError(f"`{text}` gives a {kind}, and only nodes can be selected")

    def nodes(document: Node) -> Sequence[Node]:
        try:
            return value(document, 1, 1)
        except RecursionError:
            fail(text, 0, "it is nested too deeply")

    return nodes


def compiled(expression: Expression) -> Compiled:
    """Compile any expression."""
    match expression:
        case Literal(value):
            kind = "string" if isinstance(value, str) else "number"
            return Compiled(kind, lambda node, position, size: value, literal=value)
        case Negative(inner):
            number = _as("number", compiled(inner))
            return Compiled("number", lambda *at: -number(*at))
        case Call():
            return _call(expression)
        case Binary():
            return _binary(expression)
        case Filter(inner, predicates):
            return _filter(compiled(inner), predicates)
        case Path():
            return _path(expression)


def _binary(expression: Binary) -> Compiled:
    sign = expression.operator
    if sign == "|":
        return _union([compiled(each) for each in _joined(expression)])
    left, right = compiled(expression.left), compiled(expression.right)
    if sign in ("and", "or"):
        return _logic(sign, left, right)
    if sign in _ARITHMETIC:
        return _arithmetic(sign, left, right)
    return Compiled("boolean", _comparison(sign, left, right))


def _path(path: Path) -> Compiled:
    steps = path.steps
    attribute = steps[-1].test if steps and steps[-1].axis == "attribute" else None
    if attribute is not None and len(steps) == 1 and path.start is None and not path.absolute:
        own = "" if attribute == "*" else attribute
        return Compiled("attributes", _own_attributes(attribute), own=own)
    walks = [walk(step) for step in (steps[:-1] if attribute is not None else steps)]
    start = None if path.start is None else compiled(path.start)
    if start is not None and start.kind != "nodes":
        raise ArgumentError(f"a path cannot continue from {_said(start.kind)}")

    def nodes(node: Node, position: int, size: int) -> Sequence[Node]:
        found: Sequence[Node] = (node,)
        if start is not None:
            found = start.value(node, position, size)
        elif path.absolute:
            found = (node._tree.document,)
        for step in walks:
            if not found:
                break
            found = step(found)
        return found

    if attribute is None:
        return Compiled("nodes", nodes)
    own = _own_attributes(attribute)
    return Compiled(
        "attributes", lambda *at: [each for node in nodes(*at) for each in own(node, 1, 1)]
    )


def _own_attributes(name: str) -> Value:
    names = ATTRIBUTES if name == "*" else (name,)

    def attributes(node: Node, position: int, size: int) -> list[Attribute]:
        found = ((each, ATTRIBUTES[each](node)) for each in names if node.order)
        return [Attribute(node.order, key, text) for key, text in found if text is not None]

    return attributes


def walk(step: Step) -> Walk:
    """Compile a step: from nodes in document order to nodes in document order."""
    predicates = [compiled(each) for each in step.predicates]
    test = step.test
    if not any(map(depends_on_position, step.predicates)):
        conditions = [_as("boolean", each) for each in predicates]

        def together(contexts: Sequence[Node]) -> Sequence[Node]:
            found = _passing(test, reached(step.axis, contexts))
            for holds in conditions:
                found = [node for node in found if holds(node, 1, 1)]
            return found

        return together
    axis = AXES[step.axis]

    def one_by_one(contexts: Sequence[Node]) -> Sequence[Node]:
        found: list[Node] = []
        for context in contexts:
            here = _passing(test, axis(context))
            if here:
                for each in predicates:
                    here = _kept(here, each)
                found += here
        return in_document_order(found)

    return one_by_one


def _passing(test: str, nodes: Sequence[Node]) -> Sequence[Node]:
    if test == "node()" or not nodes:
        return nodes
    if test == "*":
        return [node for node in nodes if node.order]
    return [node for node in nodes if node.type == test]


def _kept(nodes: Sequence[Node], predicate: Compiled) -> list[Node]:
    """The nodes that a predicate keeps; they come in the order that positions count."""
    size = len(nodes)
    if isinstance(predicate.literal, float):
        place = predicate.literal
        return [nodes[int(place) - 1]] if place in range(1, size + 1) else []
    value = predicate.value if predicate.kind == "number" else _as("boolean", predicate)
    if predicate.kind == "number":
        return [node for i, node in enumerate(nodes, 1) if value(node, i, size) == i]
    return [node for i, node in enumerate(nodes, 1) if value(node, i, size)]


def _filter(inner: Compiled, predicates: tuple[Expression, ...]) -> Compiled:
    if not predicates:
        return inner
    if inner.kind != "nodes":
        raise ArgumentError(f"a predicate cannot follow {_said(inner.kind)}")
    kept = [compiled(each) for each in predicates]

    def nodes(node: Node, position: int, size: int) -> Sequence[Node]:
        found = inner.value(node, position, size)
        for each in kept:
            found = _kept(found, each)
        return found

    return Compiled("nodes", nodes)


def _joined(expression: Expression) -> list[Expression]:
    """The operands of `|`, from the left; there may be thousands."""
    found: list[Expression] = []
    while isinstance(expression, Binary) and expression.operator == "|":
        found.append(expression.right)
        expression = expression.left
    return [expression, *reversed(found)]


def _union(parts: list[Compiled]) -> Compiled:
    kinds = list(dict.fromkeys(part.kind for part in parts))
    if len(kinds) > 1 or kinds[0] not in ("nodes", "attributes"):
        raise ArgumentError(
            f"`|` joins two sets of nodes, got {' and '.join(map(_said, kinds))}"
        )
    gather: Value = lambda *at: [each for part in parts for each in part.value(*at)]
    if kinds[0] == "attributes":
        return Compiled("attributes", lambda *at: sorted(set(gather(*at))))
    return Compiled("nodes", lambda *at: in_document_order(gather(*at)))


def _logic(sign: str, left: Compiled, right: Compiled) -> Compiled:
    a, b = _as("boolean", left), _as("boolean", right)
    if sign == "and":
        return Compiled("boolean", lambda *at: a(*at) and b(*at))
    return Compiled("boolean", lambda *at: a(*at) or b(*at))


def _divided(a: float, b: float) -> float:
    if b == 0:
        same_sign = math.copysign(1, a) == math.copysign(1, b)
        return math.nan if a == 0 or math.isnan(a) else math.inf if same_sign else -math.inf
    return a / b


def _remainder(a: float, b: float) -> float:
    return math.nan if b == 0 or math.isinf(a) else math.fmod(a, b)


_ARITHMETIC: dict[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "div": _divided,
    "mod": _remainder,
}


def _arithmetic(sign: str, left: Compiled, right: Compiled) -> Compiled:
    a, b = _as("number", left), _as("number", right)
    compute = _ARITHMETIC[sign]
    return Compiled("number", lambda *at: compute(a(*at), b(*at)))


_COMPARED: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def _comparison(sign: str, left: Compiled, right: Compiled) -> Value:
    """Compare as XPath 1.0 does: a set does if one of its members does."""
    compare = _COMPARED[sign]
    if left.own and right.literal is not None:
        return _attribute_to_literal(sign, left.own, right.literal)
    sets = {"nodes", "attributes"}
    kinds = {left.kind, right.kind}
    if not kinds & sets or "boolean" in kinds:
        if sign not in ("=", "!="):
            kind = "number"
        else:
            kind = next(k for k in ("boolean", "number", "string") if k in kinds)
        a, b = _as(kind, left), _as(kind, right)
        return lambda *at: compare(a(*at), b(*at))
    as_numbers = "number" in kinds or sign not in ("=", "!=")
    a, b = _members(left, as_numbers), _members(right, as_numbers)
    if right.kind not in sets:
        return lambda *at: _any_to_one(compare, a(*at), b(*at)[0])
    return lambda *at: any(_any_to_one(compare, a(*at), each) for each in b(*at))


def _attribute_to_literal(sign: str, name: str, literal: str | float) -> Value:
    """The most frequent comparison, such as `@rank=2`, without a set in between."""
    compare = _COMPARED[sign]
    read = ATTRIBUTES[name]
    if sign == "=" and isinstance(literal, str):
        return lambda node, position, size: read(node) == literal
    if sign == "!=" and isinstance(literal, str):
        return lambda node, position, size: read(node) not in (None, literal)
    wanted = to_number(literal)
    if name in NUMBERS:
        number = NUMBERS[name]
        return lambda node, position, size: (
            (found := number(node)) is not None and compare(found, wanted)
        )
    return lambda node, position, size: (
        (found := read(node)) is not None and compare(to_number(found), wanted)
    )


def _any_to_one(compare: Callable[[Any, Any], bool], members: list[Any], other: object) -> bool:
    return any(compare(each, other) for each in members)


def _members(side: Compiled, as_numbers: bool) -> Value:
    """The strings, or numbers, of a set or of a single value, as a list."""
    convert = to_number if as_numbers else to_text
    if side.kind == "attributes":
        return lambda *at: [convert(each.text) for each in side.value(*at)]
    if side.kind == "nodes":  # elements without text
        return lambda *at: [convert("")] * len(side.value(*at))
    return lambda *at: [convert(side.value(*at))]


def _as(kind: str, given: Compiled) -> Value:
    """Convert to a string, a number or a boolean."""
    value = given.value
    if given.kind == kind:
        return value
    if given.own and kind == "string":
        read = ATTRIBUTES[given.own]
        return lambda node, position, size: read(node) or ""
    if kind == "boolean":
        return lambda *at: to_truth(value(*at))
    convert = to_number if kind == "number" else to_text
    if given.kind == "nodes":
        return lambda *at: convert("")
    if given.kind == "attributes":
        return lambda *at: convert(next((each.text for each in value(*at)), ""))
    return lambda *at: convert(value(*at))


def _call(call: Call) -> Compiled:
    function = FUNCTIONS[call.name]
    if call.name == "position":
        return Compiled("number", lambda node, position, size: float(position))
    if call.name == "last":
        return Compiled("number", lambda node, position, size: float(size))
    given = [compiled(each) for each in call.arguments]
    if function.compute is None:
        return _name_of(call.name, given)
    wanted = [*function.arguments, *["string"] * (len(given) - len(function.arguments))]
    arguments: list[Value] = []
    for kind, each in zip(wanted, given, strict=False):
        if kind == "set" and each.kind not in ("nodes", "attributes"):
            raise ArgumentError(f"`{call.name}` takes nodes, got {_said(each.kind)}")
        arguments.append(each.value if kind == "set" else _as(kind, each))
    compute = function.compute
    return Compiled(function.gives, lambda *at: compute(*[each(*at) for each in arguments]))


def _name_of(called: str, given: list[Compiled]) -> Compiled:
    if not given:
        return Compiled("string", lambda node, position, size: node.type)
    kind, value, *_ = given[0]
    if kind not in ("nodes", "attributes"):
        raise ArgumentError(f"`{called}` takes nodes, got {_said(kind)}")
    field = "type" if kind == "nodes" else "name"
    return Compiled(
        "string", lambda *at: next((getattr(each, field) for each in value(*at)), "")
    )


def _said(kind: str) -> str:
    return kind if kind in ("nodes", "attributes") else f"a {kind}"
