"""`hotgrid vision models`: the models and the recipes."""

from __future__ import annotations

from json import dumps

from rich.table import Table

from hotgrid.cli._terminal import Terminal


def models(pattern: str = "*", *, recipes: bool = False, json: bool = False) -> None:
    """List the models, or the recipes.

    Args:
        pattern: Names such as "swin*"; by default all.
        recipes: List recipes instead, with their main numbers.
        json: Print JSON instead of a table.
    """
    from hotgrid.errors import ArgumentError, near
    from hotgrid.vision import find_recipe, list_models, recipe_names

    console = Terminal(highlight=False)
    if recipes:
        found = {name: find_recipe(name) for name in recipe_names()}
        if json:
            plain = {name: each.to_plain() for name, each in found.items()}
            console.out(dumps(plain, indent=2), highlight=False)
            return
        names = ("epochs", "batch", "optimizer", "rate", "decay", "smoothing", "average")
        table = Table("recipe", *names, box=None, pad_edge=False)
        for name, each in found.items():
            table.add_row(name, *(str(getattr(each, field)) for field in names))
        console.for_tables().print(table)
        return
    listed = list_models(pattern)
    if not listed:
        raise ArgumentError(f"no model is called `{pattern}`{near(pattern, list_models())}")
    console.out(dumps(listed) if json else "\n".join(listed), highlight=False)
