"""What the type checker finds does not depend on installed benchmark libraries."""

import ast
import re
import tomllib

from .packages import ROOT

# Import names of benchmarks/requirements-peers.txt, and flax, which cax brings.
RIVALS = {"numba", "pystencils", "lbmpy", "cpuinfo", "jax", "cax", "flax", "warp", "xlb"}
RIVALS |= {"grain", "timm"}


# What looks like an import; some may be in a text.
_IMPORT = re.compile(r"^\s*(?:from|import)\s+(\w+)", re.MULTILINE)


def imported(source: str, besides: frozenset[str] = frozenset()) -> set[str]:
    """Top-level names of what a file imports, besides some; parsed only if there may be any."""
    found: set[str] = set()
    if not {*_IMPORT.findall(source)} - besides:
        return found
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
    return found


def test_files_that_import_rivals_are_not_type_checked():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["basedpyright"]
    ignored = {path for pattern in settings["ignore"] for path in ROOT.glob(pattern)}
    users = {
        path
        for folder in settings["include"]
        for path in (ROOT / folder).rglob("*.py")
        if any(rival in (text := path.read_text("utf-8")) for rival in RIVALS)
        and imported(text) & RIVALS
    }
    assert {path.parent.name for path in users} == {"peers"}
    assert not [path for path in users if not ignored & {path, *path.parents}]
