"""The page with every option has what `--help` says now."""

import runpy
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "docs" / ".site" / "cli_options.py"


def test_the_page_is_up_to_date():
    script = runpy.run_path(str(SCRIPT))
    assert script["PAGE"].read_text("utf-8") == script["page"](), f"run python {SCRIPT}"
