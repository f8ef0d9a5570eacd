"""The examples on the pages of kernels run, each block alone."""

import ast
import builtins
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
PAGES = [(DOCS / folder / "kernels.md").read_text("utf-8") for folder in ("guide", "reference")]
BLOCKS = re.findall(r"```python\n(.*?)```", "".join(PAGES), re.S)
# These measure the machine, or sort 16 million numbers.
SLOW = ("copy_bandwidth", "torch.randn(16, 1024, 1024)")


def bound_in(tree: ast.AST) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            found.add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.arg):
            found.add(node.arg)
        elif isinstance(node, ast.alias):
            found.add((node.asname or node.name).split(".")[0])
    return found


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_a_block_says_where_its_names_come_from(block: str):
    tree = ast.parse(block)
    used = {each.id for each in ast.walk(tree) if isinstance(each, ast.Name)}
    assert used - bound_in(tree) - set(dir(builtins)) == set()


def test_the_blocks_run(tmp_path: Path):
    quick = [each for each in BLOCKS if not any(word in each for word in SLOW)]
    assert len(quick) >= 6
    plain = {"HOTGRID_AUTOTUNE_CACHE": "none", "HOTGRID_COMPILE_ENABLED": "off"}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", "\n".join(quick)],
        cwd=tmp_path,
        env={**os.environ, **plain, "HOTGRID_AUTOTUNE_SAMPLES": "2"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
