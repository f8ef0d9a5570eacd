"""Claim: hotgrid.tokens is the fastest exact tokenizer; missed targets are listed.

Every contestant runs in processes of its own, in turns, over the same texts; the best of
several rounds counts. Libraries whose tokens differ from tiktoken's get no figure. A turn of
the quick ones is several processes in a row: memory that was not used for some seconds is
taken back by the host of a virtual machine, and the first process waits for it.

    python benchmarks/bench_tokens.py [--rounds N] [--megabytes N] [--clock cpu] [PART ...]
    python benchmarks/bench_tokens.py --text FILE --rounds 1 speed

Parts are speed, threads, pieces and loading. Texts come from make_corpora.py, or from --text;
then figures are printed only, not kept as results. On a machine with other work `--clock cpu`
uses CPU time instead of wall time. Other libraries are in requirements-token-peers.txt
(`make tokenpeers`) or in another environment whose Python --peers names; one that is not
installed or does not run has a row that says why.
"""

import contextlib
import gzip
import importlib
import importlib.metadata
import json
import math
import os
import random
import string
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from options import parser
from peers.token_libraries import CONTESTANTS, Job, Subject, measured
from report import report

ROOT = Path(__file__).parents[1]
CORPORA = ROOT / ".hotgrid" / "corpora"
PEERS = ROOT / ".venv" / "token-peers" / "bin" / "python"
ENCODINGS = ("cl100k_base", "o200k_base")
PARTS = ("speed", "threads", "pieces", "loading")
# Libraries that return arrays; the others return lists only.
FLAT = ("hotgrid", "tiktoken", "gigatoken", "fastokens", "quicktok")
PATIENCE_SECONDS = 40
# A process that takes less in total is followed by more of the same in its turn.
QUICK_SECONDS, QUICK_PROCESSES = 6, 4
PIECE = 1_000_000


@dataclass
class Arena:
    """Where contestants run: files of all, the Python of the rivals, how often."""

    folder: Path
    python: str
    rounds: int
    clock: str
    subjects: dict[str, Subject]
    versions: dict[str, str]

    def run(self, name: str, encoding: str, **job) -> dict:
        """One job in a new process."""
        ours = name == "hotgrid"
        environ = {"TIKTOKEN_CACHE_DIR": str(self.folder), "HOTGRID_VOCAB_DIR": ""}
        found = measured(
            Job(name, self.subjects[encoding], **{"clock": self.clock, **job}),
            python=sys.executable if ours else self.python,
            environ=environ,
        )
        if "version" in found:
            self.versions[name] = found["version"]
        return found

    def best(self, names, encoding: str, *, judge: bool = True, **job) -> dict[str, dict]:
        """The best of several rounds of each contestant, all in turns."""
        found: dict[str, dict] = {}
        for _ in range(self.rounds):
            for name in names:
                for process in range(QUICK_PROCESSES):
                    took = found.get(name, {}).get("took", 0.0)
                    # Libraries that failed or are slow are not run again.
                    if took > (QUICK_SECONDS if process else PATIENCE_SECONDS):
                        break
                    found[name] = self.once_more(found.get(name), name, encoding, **job)
        return judged(found) if judge else found

    def once_more(self, before: dict | None, name: str, encoding: str, **job) -> dict:
        """The best of what was found before and one more process."""
        begin = time.monotonic()
        one = self.run(name, encoding, **job)
        one["took"] = time.monotonic() - begin if "first" in one else math.inf
        if before and "first" in one:
            for key in ("first", "best"):
                one[key] = min(one[key], before[key])
            if one["digest"] != before["digest"]:
                return {"failed": "gives other tokens in another process", "took": math.inf}
        return one


def judged(found: dict[str, dict]) -> dict[str, dict]:
    """Remove figures of libraries whose tokens differ from tiktoken's, or the majority's."""
    digests = [each["digest"] for each in found.values() if "digest" in each]
    judge = "tiktoken" if "digest" in found.get("tiktoken", {}) else "most others"
    right = (
        found["tiktoken"]["digest"]
        if judge == "tiktoken"
        else max(digests, key=digests.count, default="")
    )
    for name, each in found.items():
        if "absent" in each:
            found[name] = {"note": f"absent: {each['absent']}"}
        elif "failed" in each:
            found[name] = {"note": each["failed"]}
        elif "digest" in each and each["digest"] != right:
            found[name] = {"note": f"other tokens than {judge}"}
    if "first" not in found["hotgrid"]:
        sys.exit(f"hotgrid: {found['hotgrid']['note']}; nothing was timed")
    return found


def ratio(ours: float, theirs: float) -> float:
    return float(f"{ours / theirs:.3g}")


def speed(arena: Arena, corpora: dict[str, tuple[str, int]]) -> list[dict]:
    """One thread, arrays and lists, cold and warm."""
    rows = []
    for encoding in ENCODINGS:
        for corpus, (texts, size) in corpora.items():
            for form, names in {"flat": FLAT, "list": CONTESTANTS}.items():
                found = arena.best(names, encoding, texts=texts, form=form, passes=4)
                rows += speed_rows(found, size, encoding, corpus, form, 1)
    return rows


def threads(arena: Arena, corpora: dict[str, tuple[str, int]]) -> list[dict]:
    """Two threads, arrays; cold over one thread cold, measured again in the same minutes."""
    rows = []
    for encoding in ENCODINGS:
        for corpus, (texts, size) in corpora.items():
            job = {"texts": texts, "form": "flat", "passes": 2}
            # The time of a process counts both threads.
            two = arena.best(FLAT, encoding, threads=2, clock="wall", **job)
            one = arena.best(FLAT, encoding, threads=1, clock="wall", **job)
            new = speed_rows(two, size, encoding, corpus, "flat", 2)
            for row in new:
                alone = one[row["who"]]
                if "cold MB/s" in row and "first" in alone:
                    row["cold over one thread"] = ratio(
                        alone["first"], two[row["who"]]["first"]
                    )
            rows += new
    return rows


def speed_rows(found, size, encoding, corpus, form, count) -> list[dict]:
    rows = []
    ours = found["hotgrid"]
    for name, each in found.items():
        row = {
            "encoding": encoding,
            "text": corpus,
            "output": form,
            "threads": count,
            "who": name,
        }
        if "first" in each:
            row["cold MB/s"] = round(size / each["first"] / 1e6, 1)
            row["warm MB/s"] = round(size / each["best"] / 1e6, 1)
            row["ours/peer cold"] = ratio(each["first"], ours["first"])
            row["ours/peer warm"] = ratio(each["best"], ours["best"])
        rows.append(row | {"note": each.get("note", "")})
        show(rows[-1])
    return rows


def pieces(arena: Arena) -> list[dict]:
    """Texts of a million characters that no pattern cuts; each pass has another one.

    Otherwise libraries that cache whole pieces would only be measured on their cache.
    """
    chance = random.Random(0)
    texts = {
        name: [sign * (PIECE - place) for place in range(4)]
        for name, sign in {"a": "a", "space": " ", "^": "^", "U+4E2D": "\u4e2d"}.items()
    }
    letters = string.ascii_lowercase
    texts["a-z"] = ["".join(chance.choices(letters, k=PIECE)) for _ in range(4)]
    rows = []
    for encoding in ENCODINGS:
        for piece, variants in texts.items():
            path = arena.folder / "piece.json"
            path.write_text(json.dumps(variants))
            job = {"texts": str(path), "each": True}
            found = arena.best(FLAT, encoding, form="flat", **job, judge=False)
            lists = [name for name in CONTESTANTS if name not in FLAT]
            found |= arena.best(lists, encoding, form="list", **job, judge=False)
            found = judged(found)
            ours = min(found["hotgrid"]["first"], found["hotgrid"]["best"])
            for name, each in found.items():
                row = {"encoding": encoding, "text": f"1M {piece}", "who": name}
                if "first" in each:
                    taken = min(each["first"], each["best"])
                    row |= {"ms": round(taken * 1e3, 1), "time ours/peer": ratio(ours, taken)}
                rows.append(row | {"note": each.get("note", "")})
                show(rows[-1])
    return rows


def loading(arena: Arena) -> list[dict]:
    """From files to ready, and the most memory on the way."""
    rows = []
    for encoding in ENCODINGS:
        for name in CONTESTANTS:
            python = sys.executable if name == "hotgrid" else arena.python
            bare = peak_of_interpreter(python)
            runs = [arena.run(name, encoding) for _ in range(max(3, arena.rounds))]
            row = {"encoding": encoding, "who": name}
            if "load" in runs[0]:
                row["ms"] = round(min(run["load"] for run in runs) * 1e3, 1)
                row["MB over Python"] = round(min(run["peak"] for run in runs) / 1e6 - bare, 1)
                row["note"] = ""
            else:
                row["note"] = runs[0].get("absent") or runs[0].get("failed")
            rows.append(row)
            show(row)
    return rows


def peak_of_interpreter(python: str) -> float:
    program = "print(open('/proc/self/status').read())"
    done = subprocess.run([python, "-c", program], capture_output=True, text=True, check=True)
    line = next(line for line in done.stdout.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024 / 1e6


def aims(part: str, row: dict):
    """What is asked of a row: a word on it, the value, the aim, and whether it is met."""
    who = row["who"]
    # The target for wordchipper, which returns lists only, is 4x.
    floors = {"flat": {"gigatoken": 1.0, "tiktoken": 10.0}, "list": {"wordchipper": 4.0}}
    for key in ("ours/peer cold", "ours/peer warm"):
        if part == "speed" and key in row and who != "hotgrid":
            least = 1.5 if row["output"] == "list" else 0.0
            least = max(least, floors[row["output"]].get(who, 0.0))
            if least:  # nothing was asked of the others
                yield f"{key} {who}", row[key], least, row[key] >= least
    if who == "hotgrid" and "cold over one thread" in row:
        value = row["cold over one thread"]
        yield "two threads over one, cold", value, 1.8, value >= 1.8
    if "time ours/peer" in row and who != "hotgrid":
        yield f"time ours/{who}", row["time ours/peer"], 1.0, row["time ours/peer"] <= 1.0
    if part == "loading" and who == "hotgrid":
        key = "ms" if row["encoding"] == "cl100k_base" else "MB over Python"
        yield f"{key} to load", row[key], 60, row[key] < 60


def targets(parts: dict[str, list[dict]]) -> None:
    """Say which aims are missed."""
    met = missed = 0
    for part, rows in parts.items():
        for row in rows:
            where = " ".join(row[key] for key in ("encoding", "text", "output") if key in row)
            for what, value, aim, reached in aims(part, row):
                met, missed = met + reached, missed + (not reached)
                if not reached:
                    print(f"  missed: {part}, {where}: {what} is {value}, aim {aim}")
    print(f"{met} of {met + missed} aims met")


def show(row: dict) -> None:
    shown = (f"{key} {value}" for key, value in row.items() if value not in ("", None))
    print("  " + ", ".join(shown), flush=True)


def rank_file(name: str) -> bytes:
    """The published file of ranks, out of a package that carries it or as hotgrid finds it."""
    with contextlib.suppress(importlib.metadata.PackageNotFoundError, StopIteration):
        files = importlib.metadata.distribution("bpe-openai").files or []
        packed = next(file for file in files if str(file).endswith(f"{name}.tiktoken.gz"))
        return gzip.decompress(packed.read_binary())
    from hotgrid.tokens._files import read_vocabulary

    return read_vocabulary(name)


def arena_in(folder: Path, python: str, rounds: int, clock: str) -> Arena:
    from hotgrid.tokens import get_encoding, save_huggingface
    from hotgrid.tokens._files._vocabularies import _FILES
    from hotgrid.tokens._patterns import LEXERS

    subjects = {}
    for name in ENCODINGS:
        ranks = folder / f"{name}.tiktoken"
        ranks.write_bytes(rank_file(name))
        (folder / _FILES[name].cache_name).write_bytes(ranks.read_bytes())
        encoding = get_encoding(name, vocabulary=ranks)
        save_huggingface(encoding, folder / f"{name}.json")
        subjects[name] = Subject(
            name,
            encoding._pat_str,
            LEXERS[encoding._pat_str],
            str(ranks),
            str(folder / f"{name}.json"),
            published=True,
        )
    return Arena(folder, python, rounds, clock, subjects, {})


def corpus(name: str) -> list[str]:
    """The documents of a corpus of `make_corpora.py`."""
    path = CORPORA / f"{name}.json"
    if not path.is_file():
        sys.exit(f"there is no {name} corpus; run `python benchmarks/make_corpora.py` first")
    return json.loads(path.read_text("utf-8"))


def corpora_in(folder: Path, megabytes: float, text: Path | None) -> dict[str, tuple[str, int]]:
    """Name: a JSON file of documents, and their size, up to the requested size."""
    if text:
        texts = {text.name: [text.read_text("utf-8")]}
    else:
        texts = {name: corpus(name) for name in ("english", "mixed")}
    found = {}
    for name, all_documents in texts.items():
        documents, size = [], 0
        for document in all_documents:
            if size >= megabytes * 1e6:
                break
            documents.append(document)
            size += len(document.encode())
        (folder / f"{name}-texts.json").write_text(json.dumps(documents))
        found[name] = (str(folder / f"{name}-texts.json"), size)
    return found


def main() -> None:
    options = parser(__doc__, devices=("cpu",))
    options.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    options.add_argument("--text", type=Path, metavar="FILE", help="your text instead")
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--megabytes", type=float, default=math.inf, help="of each corpus")
    options.add_argument("--clock", choices=("wall", "cpu"), default="wall")
    options.add_argument("--peers", default=str(PEERS) if PEERS.exists() else sys.executable)
    asked = options.parse_args()
    if unknown := set(asked.parts) - set(PARTS):
        options.error(f"there is no part {', '.join(unknown)}; there are {', '.join(PARTS)}")
    load = round(os.getloadavg()[0], 1)
    with tempfile.TemporaryDirectory(prefix="hotgrid-bench-") as name:
        arena = arena_in(Path(name), asked.peers, asked.rounds, asked.clock)
        corpora = corpora_in(Path(name), asked.megabytes, asked.text)
        sizes = ", ".join(f"{key} {size / 1e6:.1f} MB" for key, (_, size) in corpora.items())
        found: dict[str, list[dict]] = {}
        for part in asked.parts or PARTS:
            print(part, flush=True)
            over = (corpora,) if part in ("speed", "threads") else ()
            found[part] = globals()[part](arena, *over)
    if asked.text:
        return
    for part, rows in found.items():
        facts = {
            "rounds": asked.rounds,
            "clock": asked.clock,
            "load_before": load,
            **arena.versions,
        }
        if part in ("speed", "threads"):
            facts["corpora"] = sizes
        report(f"tokens-{part}", rows, **facts)
    targets(found)


if __name__ == "__main__":
    main()
