"""Claim: however a run is killed, it ends with the bits of an undisturbed one.

`hotgrid run --mesh 2x1` is started again and again in a folder that holds one or two earlier
runs. At a random moment a rank, the launcher, or all of them get SIGKILL: while they start, or
just after a checkpoint. Ranks are restarted by their launcher. Where the launcher is gone, the
same command with `--resume` continues, or starts the run if it had not begun yet.

Every kill must leave the fields and the table of an undisturbed run, the earlier runs as they
were, no process and no temporary file. What must end has ten seconds.

    python benchmarks/study_kills.py --count 100
"""

import contextlib
import csv
import hashlib
import io
import math
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from options import parser

from hotgrid.cli import main as main_of_hotgrid

HOTGRID = [sys.executable, "-m", "hotgrid"]
SETTINGS = ["-c", "compile.enabled=off", "-c", "cluster.timeout=60"]
MESH = ["--mesh", "2x1"]
RESULTS = ("fields.npz", "observables.csv")
VICTIMS = ("rank 0", "rank 1", "launcher", "all")
STEPS, EVERY = 300, 20
SECONDS_TO_END = 10.0


@dataclass
class Study:
    """What all kills share: the command, the undisturbed results, the earlier runs."""

    work: Path
    device: str
    chance: random.Random
    victims: list[str]
    expected: dict[str, bytes] = field(default_factory=dict)
    earlier: dict[str, Path] = field(default_factory=dict)

    def command(self, out: Path, *, seed: int = 2, steps: int = STEPS) -> list[str]:
        """One run; the seed tells earlier runs from the one that is killed."""
        return [
            *SETTINGS, "run", "gray-scott", "--size", "32x24", "--device", self.device,
            "--seed", str(seed), "--steps", str(steps), "--every", str(EVERY),
            "--export", "npz,csv", "--out", str(out),
        ]  # fmt: skip

    def prepare(self) -> None:
        """Run undisturbed, and make folders that hold earlier runs of every kind."""
        whole = self.work / "whole"
        finish(self.command(whole))
        self.expected = {name: (whole / name).read_bytes() for name in RESULTS}
        one = self.earlier["another run"] = self.work / "one"
        finish(self.command(one, seed=1, steps=60))
        two = self.earlier["two runs, one of the same command"] = self.work / "two"
        shutil.copytree(one, two)
        finish(self.command(two, steps=80))
        old = self.earlier["a run without run.toml"] = self.work / "old"
        shutil.copytree(two / "earlier-1", old)
        (old / "run.toml").unlink()


def here(command: list[str]) -> tuple[int, str]:
    """Run a command in this process, which has torch already; its code and what it said."""
    said = io.StringIO()
    before, sys.argv = sys.argv, ["hotgrid", *command]
    try:
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
            main_of_hotgrid()
    except SystemExit as end:
        return int(end.code or 0), said.getvalue()
    finally:
        sys.argv = before


def finish(command: list[str]) -> None:
    """Run a command that must end well."""
    code, said = here(command)
    if code:
        raise SystemExit(f"{' '.join(command)} failed:\n{said}")


def main() -> int:
    """Kill as often as asked, tell of each, and return 1 if one has failed."""
    options = parser(__doc__, devices=("cpu",))
    options.add_argument("--count", type=int, default=20, help="how many kills (default 20)")
    options.add_argument("--seed", type=int, default=0, help="of the schedule (default 0)")
    asked = options.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as work:
        chance = random.Random(asked.seed)
        study = Study(Path(work), asked.device, chance, chance.sample(VICTIMS, len(VICTIMS)))
        study.prepare()
        for number in range(asked.count):
            summary, faults = kill_once(study, number)
            failed += bool(faults)
            print(f"{number + 1:4} {summary}: {'; '.join(faults) or 'equal'}", flush=True)
    print(f"{asked.count - failed} of {asked.count} kills left what an undisturbed run leaves")
    return 1 if failed else 0


def kill_once(study: Study, number: int) -> tuple[str, list[str]]:
    """Start a run, kill it, see it through; what was done, and what was wrong after it."""
    chance = study.chance
    victim = study.victims[number % len(study.victims)]
    kind = chance.choice(sorted(study.earlier))
    out = study.work / f"out-{number}"
    shutil.copytree(study.earlier[kind], out)
    before = digests(out)
    # Each victim by turns, in both kinds of moments.
    early = (number + number // len(study.victims)) % 2 == 0
    moment, due = chosen_moment(chance, out, early=early)
    summary = f"{victim} {moment}, in a folder with {kind}"
    with tempfile.TemporaryDirectory() as aside:
        run = Started([*HOTGRID, *study.command(out), *MESH], aside)
        try:
            faults = run.kill(victim, due)
            if victim in ("launcher", "all"):
                faults += gone_on(study, out, aside)
            faults += run.left()
        finally:
            run.end()
        faults += [f"left {name}" for name in Path(aside).iterdir()]
    faults += compared(study, out)
    if "same command" not in kind:
        faults += [f"lost {name}" for name, digest in before.items() if digest not in
                   digests(out).values()]  # fmt: skip
    shutil.rmtree(out)
    return summary, faults


def chosen_moment(
    chance: random.Random, out: Path, *, early: bool
) -> tuple[str, Callable[[float], bool]]:
    """When to kill: some time after the ranks exist, or just after a checkpoint."""
    if early:
        seconds = chance.uniform(0.0, 6.0)
        return f"after {seconds:.2f} s", lambda since: since >= seconds
    step = EVERY * chance.randrange(1, STEPS // EVERY - 1)
    seconds = chance.uniform(0.0, 0.1)

    def due(since: float) -> bool:
        run = out / "run.toml"
        # Earlier runs have the same steps until they are moved aside.
        begun = run.exists() and f"\nsteps = {STEPS}\n" in run.read_text(encoding="utf-8")
        found = begun and any(
            int(path.name[5:]) >= step for path in (out / "checkpoints").glob("step-*")
        )
        if found:
            time.sleep(seconds)
        return found

    return f"{seconds:.2f} s after step {step}", due


class Started:
    """A launcher with its ranks, in a session of its own."""

    def __init__(self, command: list[str], aside: str) -> None:
        self.process = subprocess.Popen(
            command,
            env={**os.environ, "TMPDIR": aside},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def members(self) -> dict[str, int]:
        """The live ranks and the launcher, by name."""
        found = {"launcher": self.process.pid} if self.process.poll() is None else {}
        for pid in session(self.process.pid):
            with contextlib.suppress(OSError):
                variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
                for each in variables:
                    if each.startswith(b"RANK=") and pid != self.process.pid:
                        found[f"rank {each[5:].decode()}"] = pid
        return found

    def kill(self, victim: str, due: Callable[[float], bool]) -> list[str]:
        """Kill at the moment that is due; what was wrong until all had ended that must."""
        members: dict[str, int] = {}
        while len(members) < 3 and self.process.poll() is None:
            members = self.members()
            time.sleep(0.02)
        begun = time.monotonic()
        while self.process.poll() is None and not due(time.monotonic() - begun):
            time.sleep(0.005)
        for pid in members.values() if victim == "all" else [members.get(victim, 0)]:
            with contextlib.suppress(ProcessLookupError):
                if pid:
                    os.kill(pid, signal.SIGKILL)
        struck = time.monotonic()
        ranks = [pid for name, pid in members.items() if name.startswith("rank")]
        while {*ranks} & {*session(self.process.pid)}:
            if time.monotonic() - struck > SECONDS_TO_END:
                return [f"ranks were there {SECONDS_TO_END:g} s after the kill"]
            if self.process.poll() is None:
                time.sleep(0.02)
        return []

    def left(self) -> list[str]:
        """Wait for the launcher; what is wrong with its end."""
        said = self.process.communicate(timeout=240)[1]
        code = self.process.returncode
        faults = [] if code in (0, -signal.SIGKILL) else [f"exit code {code}: {said}"]
        faults += ["a traceback"] * ("Traceback" in said)
        return faults + [f"process {pid} is left" for pid in session(self.process.pid)]

    def end(self) -> None:
        """Leave nothing of a study that failed."""
        for pid in session(self.process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.communicate()


def gone_on(study: Study, out: Path, aside: str) -> list[str]:
    """Go on as a user would: resume, or begin where the new run had not begun."""
    # On the same mesh, or in a single process.
    mesh = study.chance.choice((MESH, []))
    command = study.command(out)
    code, said = going(command, [*mesh, "--resume"], aside)
    if code and "another run" in said:
        code, said = going(command, mesh, aside)
    return [f"going on failed: {said}"] if code else []


def going(command: list[str], more: list[str], aside: str) -> tuple[int, str]:
    if not more or more == ["--resume"]:
        return here([*command, *more])
    done = subprocess.run(
        [*HOTGRID, *command, *more],
        env={**os.environ, "TMPDIR": aside}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.returncode, done.stderr


def session(leader: int) -> list[int]:
    """The live processes of a session."""
    found: list[int] = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, *numbers = path.read_text().rpartition(")")[2].split()
            if int(numbers[2]) == leader and state not in "ZX":
                found.append(int(path.parent.name))
    return found


def compared(study: Study, out: Path) -> list[str]:
    """What differs from an undisturbed run, and what should not be there."""
    faults = [
        f"{name} differs"
        for name, expected in study.expected.items()
        if not (out / name).exists() or not same(name, (out / name).read_bytes(), expected)
    ]
    hidden = [path for path in out.rglob(".*") if path.name != ".run.lock"]
    return faults + [f"left {path.relative_to(out)}" for path in hidden]


def same(name: str, found: bytes, expected: bytes) -> bool:
    """Whether a file is the same: fields bit for bit, sums over several ranks to rounding."""
    if name != "observables.csv":
        return found == expected
    rows, known = ([*csv.reader(x.decode().splitlines())] for x in (found, expected))
    return [*map(len, rows)] == [*map(len, known)] and all(
        x == y or math.isclose(float(x), float(y), rel_tol=1e-12)
        for row, right in zip(rows, known, strict=True)
        for x, y in zip(row, right, strict=True)
    )


def digests(folder: Path) -> dict[str, str]:
    """Every file with a digest of what is in it."""
    return {
        str(path.relative_to(folder)): hashlib.blake2b(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


if __name__ == "__main__":
    sys.exit(main())
