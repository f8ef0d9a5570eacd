"""Private names of torch are used in one module, which says what each is for."""

import ast
from pathlib import Path

import pytest

from .packages import FOLDERS, SOURCE

GATHERED = SOURCE / "tensors" / "_torch_private.py"
# Methods of tensors, which are not reached by a name of torch.
PRIVATE_METHODS = {"_is_zerotensor", "_neg_view", "_is_view", "_efficientzerotensor"}


def is_private(name: str) -> bool:
    return any(part.startswith("_") and not part.startswith("__") for part in name.split("."))


def private_names(path: Path) -> list[str]:
    """Every private name of torch in a file, each with its line."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found, of_torch = [], {"torch"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [each for each in node.names if each.name.split(".")[0] == "torch"]
            found += [(node.lineno, each.name) for each in names if is_private(each.name)]
            of_torch |= {each.asname or "torch" for each in names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "torch":
            full = [f"{node.module}.{each.name}" for each in node.names]
            found += [(node.lineno, name) for name in full if is_private(name)]
            # A module of torch, such as `forward_ad`, has private names of its own.
            of_torch |= {each.asname or each.name for each in node.names}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and is_private(node.attr):
            root = node.value
            while isinstance(root, ast.Attribute):
                root = root.value
            named = isinstance(root, ast.Name) and root.id in of_torch
            operator = ast.unparse(node).startswith("torch.ops.")
            if (named and not operator) or node.attr in PRIVATE_METHODS:
                found.append((node.lineno, node.attr))
    return [f"line {line}: {name}" for line, name in found]


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_other_module_names_one(folder: str):
    files = [path for path in (SOURCE / folder).rglob("*.py") if path != GATHERED]
    found = {str(path.relative_to(SOURCE)): private_names(path) for path in files}
    assert {name: lines for name, lines in found.items() if lines} == {}, (
        "move it to hotgrid.tensors._torch_private and import it from there"
    )


def test_the_patterns_would_find_them(tmp_path: Path):
    path = tmp_path / "some.py"
    path.write_text(
        "import torch\nfrom torch._dynamo import exc\nfrom torch.autograd import forward_ad\n"
        "torch._C._is_tracing()\nforward_ad._current_level\nx._is_zerotensor()\n"
    )
    assert len(private_names(path)) >= 4
    assert len(private_names(GATHERED)) > 10
