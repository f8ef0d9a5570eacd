"""What the README shows can be copied, pasted and run."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_python_example_runs(tmp_path):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    assert blocks
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", "\n".join(blocks)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    # A thousand steps of diffusion leave next to nothing of white noise (0.2887 at first).
    found = re.search(r"([\d,]+) million cells a second, (0\.\d+) left", done.stdout)
    assert found, done.stdout
    assert 0 < float(found[2]) < 0.02


def test_the_home_page_of_the_docs_shows_the_same_smallest_example():
    first = [
        re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.S)[0]
        for page in ("README.md", "docs/index.md")
    ]
    assert first[0] == first[1]


def test_the_two_commands_are_there():
    text = (ROOT / "README.md").read_text()
    assert "make demo" in text
    assert "make test" in text
