"""`hotgrid run` while it runs: in the terminal with `--watch`, and as VTK files over time."""

import os
import shutil
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

import hotgrid as hg
from hotgrid.grid import pde

from ..grid.terminal_screen import Screen, Terminal  # noqa: TID252  tests are not a package
from ..grid.vtk_files import decoded, listed  # noqa: TID252
from .command import run

HEAT = ["run", "heat", "--size", "8x12", "--device", "cpu"]
PROGRAM = [sys.executable, "-m", "hotgrid", "-c", "compile.enabled=off"]


def hotgrid(*arguments: str) -> int:
    return run(["-c", "compile.enabled=off", *arguments])


def steps_of(out: str) -> list[int]:
    return [int(path.stem) for _, path in listed(Path(out, "views.pvd"))]


def test_vtk_files_over_time_hold_the_states():
    options = ["--export", "vti", "--every", "10", "--out", "out"]
    assert hotgrid(*HEAT, "--steps", "35", *options) == 0
    assert {path.name for path in Path("out").iterdir()} == {
        "run.toml", "checkpoints", "views", "views.pvd",
    }  # fmt: skip
    assert steps_of("out") == [0, 10, 20, 30, 35]
    sim = hg.Simulation(pde.Heat(), size=(8, 12), device="cpu", compiled=False)
    for when, path in listed(Path("out/views.pvd")):
        sim.run(int(path.stem) - sim.step_count, progress=False)
        assert when == sim.time
        assert (decoded(path)[1]["u"] == sim.view("u").numpy()).all()


def test_without_every_it_is_the_last_state_alone():
    assert hotgrid(*HEAT, "--steps", "5", "--export", "vti", "--out", "out") == 0
    assert Path("out/views.vti").is_file()
    assert not Path("out/views.pvd").exists()


@pytest.mark.parametrize("period", ["10", "15"])
def test_a_resumed_run_lists_what_one_long_run_does(period: str):
    """The newest checkpoint is lost: the list was ahead of where the run goes on."""
    options = ["--export", "vti", "--every", "10", "--checkpoint-every", period]
    assert hotgrid(*HEAT, "--steps", "60", "--out", "whole", *options) == 0
    assert hotgrid(*HEAT, "--steps", "40", "--out", "parts", *options) == 0
    newest = max(hg.store.Checkpoints(Path("parts/checkpoints")).steps())
    [folder] = [
        path for path in Path("parts/checkpoints").iterdir() if str(newest) in path.name
    ]
    shutil.rmtree(folder)
    assert hotgrid(*HEAT, "--steps", "60", "--out", "parts", *options, "--resume") == 0
    assert steps_of("parts") == [0, 10, 20, 30, 40, 50, 60]
    names = ["views.pvd", *(f"views/{step:09}.vti" for step in steps_of("whole"))]
    for name in names:
        assert Path("parts", name).read_bytes() == Path("whole", name).read_bytes()


def test_a_run_that_is_killed_lists_what_is_there():
    options = ["--out", "out", "--export", "vti", "--every", "5", "--checkpoint-every", "20"]
    command = [*PROGRAM, *HEAT, *options, "--steps", "1000000"]
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not Path("out/views/000000060.vti").exists() and running.poll() is None:
        time.sleep(0.02)
    running.kill()
    running.wait()
    found = steps_of("out")
    assert found == list(range(0, 5 * len(found), 5))
    assert all(ET.parse(path) for _, path in listed(Path("out/views.pvd")))
    last = max(found) + 7
    assert hotgrid(*HEAT, *options, "--steps", str(last), "--resume") == 0
    assert steps_of("out") == [*range(0, last, 5), last]


def test_the_files_of_an_earlier_run_go_with_it():
    options = ["--export", "vti", "--every", "2", "--out", "out"]
    assert hotgrid(*HEAT, "--steps", "4", *options) == 0
    assert hotgrid(*HEAT, "--steps", "2", *options) == 0
    assert steps_of("out") == [0, 2]
    assert steps_of("out/earlier-1") == [0, 2, 4]


def test_watch_without_a_terminal_says_so_and_runs(capsys: pytest.CaptureFixture[str]):
    assert hotgrid(*HEAT, "--steps", "5", "--watch") == 0
    told = capsys.readouterr()
    assert told.err.count("\n") == 1
    assert "`--watch` needs a terminal" in told.err
    assert "step" in told.out


def watched(*arguments: str) -> tuple["subprocess.Popen[str]", Terminal]:
    terminal = Terminal(20, 70)
    running = subprocess.Popen(
        [*PROGRAM, *arguments, "--watch"],
        stdout=subprocess.PIPE,
        stderr=terminal.slave,
        env={**os.environ, "COLORTERM": "truecolor", "TERM": "xterm"},
        text=True,
        # Where it is ignored, as by nohup, an interrupt would not arrive.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
    )
    return running, terminal


@pytest.mark.slow
@pytest.mark.parametrize("mesh", [[], pytest.param(["--mesh", "2x1"], marks=pytest.mark.long)])
def test_watch_draws_the_run_instead_of_a_bar(mesh: list[str]):
    running, terminal = watched(*HEAT[:2], "--size", "24x32", "--steps", "400", *mesh)
    said, _ = running.communicate(timeout=200)
    text = terminal.close()
    assert running.returncode == 0, text
    assert said.count("Heat on 24x32") == 1
    shown = Screen().feed(text)
    assert shown.frames >= 2
    assert shown.cursor_shown
    assert (len(shown.pixels()), len(shown.pixels()[0])) == (24, 32)
    assert shown.text(12).startswith("Heat: u  step 400 of 400")
    assert "MLUPS" not in text


def test_an_interrupt_leaves_the_terminal_as_it_was():
    running, terminal = watched(*HEAT[:2], "--size", "24x32", "--steps", "100000000")
    while terminal.seen_so_far.count("steps/s") < 2 and running.poll() is None:
        time.sleep(0.02)
    running.send_signal(signal.SIGINT)
    try:
        running.communicate(timeout=100)
    finally:
        running.kill()
    shown = Screen().feed(terminal.close().replace("\n", "\r\n"))
    assert running.returncode == 130
    assert shown.cursor_shown
    assert shown.front is shown.back is None
    assert "interrupted at step" in "".join(map(shown.text, range(len(shown.rows))))
