"""The examples on the page on codebooks run, each block alone."""

import os
import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "codebook.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)


def test_every_block_runs(tmp_path: Path):
    alone = "\n".join(f"exec({block!r}, {{}})" for block in BLOCKS)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", alone],
        cwd=tmp_path,
        env={**os.environ, "HOTGRID_AUTOTUNE_CACHE": "none"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert len(BLOCKS) >= 4
