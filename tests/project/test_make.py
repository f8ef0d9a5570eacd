"""The targets of `make` that people and CI call."""

import re
import subprocess

from .packages import ROOT


def commands(target: str, *options: str) -> str:
    """What `make` would run for a target, without running it."""
    dry = ["make", "--dry-run", "--no-print-directory", *options, target]
    return subprocess.run(dry, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def test_help_lists_every_target_with_a_description():
    listed = subprocess.run(
        ["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    phony = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert phony is not None
    assert set(re.findall(r"^  make (\S+) +\S", listed, re.MULTILINE)) == set(phony[1].split())


def test_each_test_belongs_to_one_of_the_two_targets():
    quick, slow = commands("test"), commands("test-slow")
    assert re.findall(r"-m (.*?)(?= -|$)", quick.splitlines()[-1]) == ['"not long"']
    assert re.search(r"pytest .*-m long", slow)


def test_bench_makes_the_corpora_first():
    # A fresh clone has nothing: --always-make takes nothing for made.
    planned = commands("bench", "--always-make")
    assert (
        0 < planned.find("benchmarks/make_corpora.py\n") < planned.find("benchmarks/bench_*.py")
    )


def test_ci_runs_the_targets_in_this_order():
    ci = (ROOT / ".ci" / "run").read_text()
    assert re.findall(r"^make (\S+)$", ci, re.MULTILINE) == ["check", "test", "test-slow"]
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text()
    assert re.findall(r"run: make (\S+)", workflow) == ["setup", "check", "test", "test-slow"]


def test_clean_removes_what_runs_leave_behind():
    """Every folder that git ignores at the root is one that `make clean` removes."""
    ignored = (ROOT / ".gitignore").read_text().splitlines()
    folders = {line.strip("/") for line in ignored if line.endswith("/") and "*" not in line}
    removed = set(commands("clean").replace("-name __pycache__", " __pycache__ ").split())
    assert folders <= removed
