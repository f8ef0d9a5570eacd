"""The message for an expression that selects nothing: where it fails, and what is there."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from hotgrid.errors import near

from ._evaluate import walk
from ._node import Node, Tree
from ._parse import Binary, Call, Expression, Filter, Literal, Negative, Path, Step, parse

_SHOWN = 5


def nearest(tree: Tree, text: str) -> str:
    """Return the message for an expression that selects nothing from a tree."""
    reasons = [_reason(tree, text, path) for path in _paths(parse(text))]
    return "\n".join((f"`{text}` selects nothing from {tree.root.type}:", *reasons))


def _paths(expression: Expression) -> Iterator[Path]:
    """The paths that an expression joins, from the left."""
    match expression:
        case Binary("|", left, right):
            yield from _paths(left)
            yield from _paths(right)
        case Filter(inner):
            yield from _paths(inner)
        case Path(start=Filter() as start):
            yield from _paths(start)
        case Path():
            yield expression
        case _:
            return


def _reason(tree: Tree, text: str, path: Path) -> str:
    found: Sequence[Node] = (tree.document,)
    done = ""
    for step in path.steps:
        after = walk(step)(found)
        if not after:
            return _failure(tree, text, done, found, step)
        found, done = after, text[: step.end]
    said = done if done.count("(") == done.count(")") else text
    return f"  `{said}` gives {_counted(found)}, and no condition after it holds"


def _failure(tree: Tree, text: str, done: str, before: Sequence[Node], step: Step) -> str:
    """Why a step reaches nothing: no such type there, or a predicate drops all of them."""
    deep = step.axis != "child"
    where = f"under `{done.lstrip('(')}`" if done else "in the module" if deep else "at the top"
    bare = walk(replace(step, predicates=()))(before)
    if bare:
        return f"  no {_called(step)} {where} meets the conditions\n{_values(bare, step)}"
    around = walk(replace(step, predicates=(), test="*"))(before)
    lines = [f"  there is no {_called(step)} {where}"]
    if around:
        types = Counter(node.type for node in around)
        lines[0] += f", but {_counted(around)}{near(step.test, types)}"
    elsewhere = [node for node in tree if node.type == step.test]
    if elsewhere:
        lines.append(f"  {_counted(elsewhere)} elsewhere; `//{step.test}` reaches all depths:")
        lines += _shown(elsewhere)
    elif not around:
        lines += [f"  the tree has {_counted(list(tree))}{near(step.test, _types(tree))}"]
    return "\n".join(lines)


def _values(nodes: Sequence[Node], step: Step) -> str:
    """The attributes of nodes whose values a predicate does not accept."""
    lines = [f"  {_counted(nodes)} before the conditions:"]
    for name, wanted in (pair for each in step.predicates for pair in _asked(each)):
        values = Counter(
            node.attributes[name] for node in nodes if name in node.attributes
        ).most_common()
        if wanted in dict(values):
            continue
        hint = near(wanted, (value for value, _ in values))
        some = ", ".join(value for value, _ in values[: 2 * _SHOWN]) or "missing"
        more = ", ..." if len(values) > 2 * _SHOWN else ""
        lines.append(f"  @{name} is not `{wanted}`{hint} (it is {some}{more})")
    return "\n".join((*lines, *_shown(nodes)))


def _asked(expression: Expression) -> Iterator[tuple[str, str]]:
    """The attributes that a predicate compares with a literal, and the literals."""
    match expression:
        case Binary("=", Path((Step("attribute", name),)), Literal(value)):
            yield name, value if isinstance(value, str) else f"{value:g}"
        case Binary(_, left, right):
            yield from _asked(left)
            yield from _asked(right)
        case Call(_, (Path((Step("attribute", name),)), Literal(value))):
            yield name, str(value)
        case Negative(inner) | Filter(inner):
            yield from _asked(inner)
        case _:
            return


def _shown(nodes: Sequence[Node]) -> list[str]:
    lines = [f"    {node!r}"[: 4 + 120] for node in nodes[:_SHOWN]]
    return lines + ["    ..."] * (len(nodes) > _SHOWN)


def _counted(nodes: Sequence[Node]) -> str:
    types = Counter(node.type for node in nodes).most_common(_SHOWN + 1)
    said = ", ".join(f"{count} {name}" for name, count in types[:_SHOWN])
    return said + (", ..." if len(types) > _SHOWN else "")


def _types(tree: Tree) -> set[str]:
    return {node.type for node in tree}


def _called(step: Step) -> str:
    return "node" if step.test in ("*", "node()") else f"`{step.test}`"
