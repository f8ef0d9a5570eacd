"""Parameters of a model divided among selectors: each in one group, none left over."""

from collections.abc import Callable, Iterable, Mapping
from typing import Literal

from torch import nn

from hotgrid.errors import ArgumentError
from hotgrid.nn import Query, select, tree
from hotgrid.train._optimizers import OptimizerSpec

Selector = str | Query
Spec = OptimizerSpec | Literal["frozen"]
Split = list[tuple[str, Spec, dict[str, nn.Parameter]]]

_SHOWN = 12


def split(model: nn.Module, specs: Mapping[Selector, Spec], rest: Spec | None) -> Split:
    """Return name, spec and parameters of every group, in order; checked."""
    for selector, spec in (*specs.items(), *([("rest", rest)] if rest is not None else [])):
        _expect_spec(str(selector), spec)
    grown = tree(model)
    # A shared parameter is always found under its first path.
    every = select(grown, "//Param").parameters()
    owners: dict[str, list[str]] = {path: [] for path in every}
    for selector in specs:
        for path in select(grown, selector).parameters():
            owners[path].append(str(selector))
    twice = {path: found for path, found in owners.items() if len(found) > 1}
    if twice:
        raise ArgumentError(
            "groups must not overlap, and "
            + _listed(twice, lambda path: f"`{path}` is in {_quoted(twice[path])}")
            + "; narrow one of the selectors"
        )
    left = [path for path, found in owners.items() if not found]
    if left and rest is None:
        raise ArgumentError(
            f"every parameter must be in a group, and {_listed(left, lambda p: f'`{p}`')} "
            f"{'is' if len(left) == 1 else 'are'} in none; add a selector, or give "
            "`rest=` a spec or 'frozen'"
        )
    members: Split = [
        (
            str(selector),
            spec,
            {p: every[p] for p, found in owners.items() if str(selector) in found},
        )
        for selector, spec in specs.items()
    ]
    if rest is not None and left:
        members.append(("rest", rest, {path: every[path] for path in left}))
    return _named(members)


def _named(members: Split) -> Split:
    found: Split = []
    for selector, spec, parameters in members:
        name = selector
        if not isinstance(spec, str):
            name = spec.name or selector
        if name == "frozen" and not isinstance(spec, str):
            raise ArgumentError(
                "a trained group is called 'frozen', which is the name of parameters without "
                "an optimizer; give its spec another `name`"
            )
        if name in (other for other, _, _ in found):
            raise ArgumentError(f"two groups are called {name!r}; give specs another `name`")
        found.append((name, spec, parameters))
    return found


def _expect_spec(selector: str, spec: object) -> None:
    if spec != "frozen" and not isinstance(spec, OptimizerSpec):
        raise ArgumentError(
            f"the spec of `{selector}` is {spec!r}; expected an optimizer such as "
            "`AdamW(rate=3e-4)`, or 'frozen'"
        )


def _quoted(selectors: list[str]) -> str:
    return " and ".join(f"`{selector}`" for selector in selectors)


def _listed(paths: Iterable[str], text: Callable[[str], str]) -> str:
    paths = list(paths)
    shown = ", ".join(text(path) for path in paths[:_SHOWN])
    more = len(paths) - _SHOWN
    return shown + (f" and {more} more" if more > 0 else "")
