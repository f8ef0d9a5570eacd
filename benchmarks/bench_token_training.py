"""Claim: training 20 MB to 32,000 tokens takes at most half the time of rustbpe.

Trains on the same texts by the same pattern with hotgrid, rustbpe and HuggingFace's tokenizers,
each in a process of its own, in turns; the best of several rounds counts. There is no figure
unless the results agree: HuggingFace's tokens must be ours, one for one; rustbpe numbers bytes
differently and so breaks ties differently, so a few of its tokens may differ.

    python benchmarks/bench_token_training.py [--smoke] [--peers PYTHON] [FILE ...]

Without files it takes text that this machine has. --smoke takes one megabyte and keeps nothing.
Other libraries are in requirements-token-peers.txt (`make tokenpeers`) or in another
environment whose Python --peers names; one that is not installed is reported as missing.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from options import parser

ROOT = Path(__file__).parents[1]
PEERS = ROOT / ".venv" / "token-peers" / "bin" / "python"
TOKENS = 32_000
BYTES = 20_000_000
DOCUMENT_CHARACTERS = 20_000
ROUNDS = 3
# Of rustbpe's tokens, where ties are decided otherwise.
SHARED_AT_LEAST = 0.98


def corpus(files: list[Path], size: int) -> list[str]:
    """Texts of a number of bytes: of files, or of what every Debian and Python has."""
    texts: list[str] = []
    for path in files or _texts_here():
        try:
            text = path.read_bytes().decode()
        except (UnicodeDecodeError, OSError):
            continue
        for at in range(0, len(text), DOCUMENT_CHARACTERS):
            texts.append(text[at : at + DOCUMENT_CHARACTERS])
            size -= len(texts[-1].encode())
            if size <= 0:
                return texts
    return texts


def _texts_here() -> Iterator[Path]:
    for folder, kinds in (
        (Path(sysconfig.get_path("stdlib")), {".py", ".txt", ".rst"}),
        (Path("/usr/share"), {".txt", ".md", ".html", ".rst"}),
        (Path("/usr/include"), {".h", ".hpp"}),
    ):
        yield from (path for path in sorted(folder.rglob("*")) if path.suffix in kinds)


# Each returns what makes the tokens, and what tells them as bytes, in order.


def hotgrid(texts: list[str], pattern: str):
    from hotgrid.tokens import train

    def make():
        return train(texts, TOKENS, pattern=pattern, special_tokens=())

    def tokens(made) -> list[bytes]:
        return sorted(made._mergeable_ranks, key=made._mergeable_ranks.__getitem__)

    return make, tokens


def rustbpe(texts: list[str], pattern: str):
    from rustbpe import Tokenizer  # pyright: ignore[reportMissingImports]

    tokenizer = Tokenizer()

    def make():
        tokenizer.train_from_iterator(iter(texts), TOKENS, pattern=pattern)

    def tokens(_) -> list[bytes]:
        return [bytes(token) for token, _ in tokenizer.get_mergeable_ranks()]

    return make, tokens


def tokenizers(texts: list[str], pattern: str):
    from tokenizers import (  # pyright: ignore[reportMissingImports]
        Regex,
        Tokenizer,
        models,
        pre_tokenizers,
        trainers,
    )

    from hotgrid.tokens._files import to_bytes

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(pattern), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    trainer = trainers.BpeTrainer(
        vocab_size=TOKENS,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )

    def make():
        tokenizer.train_from_iterator(texts, trainer)

    def tokens(_) -> list[bytes]:
        vocabulary = tokenizer.get_vocab()
        return [to_bytes(token) for token in sorted(vocabulary, key=vocabulary.__getitem__)]

    return make, tokens


TRAINERS = {trainer.__name__: trainer for trainer in (hotgrid, rustbpe, tokenizers)}


def work(name: str, place: Path) -> None:
    """One training in this process; prints what came of it."""
    job = json.loads(place.read_text())
    try:
        make, tokens = TRAINERS[name](job["texts"], job["pattern"])
    except ImportError as problem:
        print(json.dumps({"absent": str(problem)}))
        return
    wall, processor = time.perf_counter(), time.process_time()
    made = make()
    found = {"s": time.perf_counter() - wall, "cpu s": time.process_time() - processor}
    peak = int(re.findall(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[0]) / 1024
    print(
        json.dumps(found | {"peak MB": peak, "tokens": [token.hex() for token in tokens(made)]})
    )


def trained(name: str, place: Path, python: Path, threads: int) -> dict:
    command = [sys.executable if name == "hotgrid" else str(python), __file__]
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "src"),
        "HOTGRID_THREADS": str(threads),
        "RAYON_NUM_THREADS": str(threads),
    }
    done = subprocess.run(
        [*command, "--work", name, str(place)],
        env=environment,
        stdout=subprocess.PIPE,
        check=True,
    )
    return json.loads(done.stdout)


def check(name: str, found: list[str], expected: list[str]) -> int:
    """How many tokens are ours, too; stops where they must not differ so much."""
    shared = len(set(found) & set(expected))
    same = found == expected if name != "rustbpe" else shared >= SHARED_AT_LEAST * len(found)
    if not same:
        sys.exit(f"{name} shares {shared} of {len(expected)} tokens; there is no figure")
    return shared


def main() -> None:
    asked = parser(__doc__, devices=("cpu",))
    asked.add_argument("files", nargs="*", type=Path, metavar="FILE")
    asked.add_argument("--smoke", action="store_true", help="one megabyte; nothing is kept")
    asked.add_argument(
        "--peers", type=Path, default=PEERS if PEERS.exists() else sys.executable
    )
    asked.add_argument("--work", nargs=2, help=argparse.SUPPRESS)
    options = asked.parse_args()
    if options.work:
        work(options.work[0], Path(options.work[1]))
        return
    measure(options.files, options.peers, options.smoke)


def measure(files: list[Path], python: Path, smoke: bool) -> None:
    import report

    from hotgrid import _native
    from hotgrid.tokens._patterns import CL100K, PORTABLE

    threads = _native.core().threads()
    texts = corpus(files, BYTES // 20 if smoke else BYTES)
    size = sum(len(text.encode()) for text in texts) / 1e6
    rows: dict[str, dict] = {}
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "job.json"
        # Possessive repeats and `$` mean something else to other engines.
        place.write_text(json.dumps({"texts": texts, "pattern": PORTABLE[CL100K]}))
        expected = trained("hotgrid", place, python, 1)["tokens"]
        names = list(TRAINERS)
        for _ in range(1 if smoke else ROUNDS):
            for name in list(names):
                found = trained(name, place, python, threads)
                if "absent" in found:
                    report.absent(name, found["absent"])
                    names.remove(name)
                    continue
                shared = check(name, found["tokens"], expected)
                row = rows.setdefault(name, {"trainer": name, "tokens shared": shared})
                for key in ("s", "cpu s", "peak MB"):
                    row[key] = round(min(row.get(key, found[key]), found[key]), 3)
    for row in rows.values():
        row["MB/s"] = round(size / row["s"], 1)
        if "rustbpe" in rows:
            row["time / rustbpe"] = round(row["s"] / rows["rustbpe"]["s"], 3)
    if smoke:
        print(*rows.values(), sep="\n")
        return
    facts = {"MB": round(size, 1), "tokens": TOKENS, "threads": threads}
    report.report("token_training", list(rows.values()), **facts)


if __name__ == "__main__":
    main()
