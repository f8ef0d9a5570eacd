"""The commands of `hotgrid sphere`, as import strings."""

from types import MappingProxyType

from cyclopts import App

from hotgrid.cli._command_group import command_group

_EPILOGUE = """\
Leaves of a corpus (see `hotgrid ingest`) get a place on a sphere. The radius
shows how prominent and how predictable a leaf is, the direction its content.

Examples:
  hotgrid ingest docs/ src/ --out corpus
  hotgrid sphere place corpus
  hotgrid sphere query corpus "checkpoints"
  hotgrid sphere view corpus
"""

# Name: where it is, what it does, examples.
_COMMANDS = MappingProxyType(
    {
        "place": (
            "_place:place",
            "Place the leaves of a corpus on shells, and write that to its sidecar.",
            """\
Zones are instruction (around the north pole), content, and qa (around the
south pole). The first --zone that matches decides; a leaf that none matches
is content.

Examples:
  hotgrid sphere place corpus
  hotgrid sphere place corpus --zone "qa=faq/*" --zone instruction=prompt
  hotgrid sphere place corpus --shells 128 --temperature 0.1 --device cuda
  sqlite3 corpus/corpus.db "SELECT zone, count(*) FROM places GROUP BY zone"
""",
        ),
        "query": (
            "_query:query",
            "Find the leaves in a cone around a text, a node or a direction.",
            """\
Examples:
  hotgrid sphere query corpus "how to save a model"
  hotgrid sphere query corpus --node 1204 --angle 10 --top 20
  hotgrid sphere query corpus --direction 0,0,-1 --angle 15 --json
""",
        ),
        "view": (
            "_view:view",
            "View the sphere in the browser.",
            """\
The page is served to this machine only, behind a token in its address. Ctrl-C
ends it.

Examples:
  hotgrid sphere view corpus
  hotgrid sphere view corpus --port 9000 --no-open
""",
        ),
    }
)


def sphere_group() -> App:
    """The group of commands."""
    return command_group(
        "sphere", "Arrange a corpus on a sphere, search it and view it.", _EPILOGUE, _COMMANDS
    )
