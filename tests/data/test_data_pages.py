"""The examples on the pages of data run, and print what they say."""

import re
import subprocess
import sys
from pathlib import Path

GUIDE = Path(__file__).parents[2] / "docs" / "guide"
TEXT = "".join((GUIDE / page).read_text("utf-8") for page in ("data.md", "data_plans.md"))
CODE = "\n".join(re.findall(r"```python\n(.*?)```", TEXT, re.S))


def test_the_blocks_run(tmp_path: Path):
    done = subprocess.run(
        [sys.executable, "-c", CODE], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    said = re.findall(r"^ *print\(.*\)  # (.*)$", CODE, re.M)
    assert len(said) == 2
    assert [each for each in said if each not in done.stdout] == []
