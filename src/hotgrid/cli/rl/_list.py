"""`hotgrid rl list`: the environments."""

from json import dumps

from rich.table import Table

from hotgrid.cli._terminal import Terminal


def list_environments(*, json: bool = False) -> None:
    """List the environments that come with hotgrid.

    Args:
        json: Print one JSON array instead.
    """
    from hotgrid.train.rl import environments, recipe_for

    rows = [
        {
            "name": name,
            "actions": str(each.actions),
            "observations": each.observations,
            "limit": each.limit,
            "gymnasium": each.twin,
            "recipe": recipe_for(name).chosen_on,
            "summary": each.summary,
        }
        for name, each in environments().items()
    ]
    console = Terminal(highlight=False)
    if json:
        console.out(dumps(rows, indent=2), highlight=False)
        return
    heads = ("name", "equal to", "recipe of", "task")
    table = Table(*heads, box=None, pad_edge=False)
    for row in rows:
        table.add_row(row["name"], row["gymnasium"] or "", row["recipe"], row["summary"])
    console.for_tables().print(table)
    console.out(
        "\nA recipe that was chosen on another environment is only a start.", highlight=False
    )
