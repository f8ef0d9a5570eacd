"""The tokenizers that bench_tokens.py compares, each in a process of its own.

`measured` runs this file, which loads one library, encodes texts and answers with times and a
digest of the tokens. It imports nothing of hotgrid, so the other libraries can live in an
environment of their own.
"""

import hashlib
import importlib
import importlib.metadata
import json
import os
import subprocess
import sys
import tempfile
import time
from array import array
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Any

# Takes texts and a number of threads; returns tokens in any form that `_plain` knows.
Encode = Callable[[list[str], int], Any]
Forms = Mapping[str, Encode]


@dataclass(frozen=True)
class Subject:
    """The encoding that all contestants are made from, as files.

    Attributes:
        name: What it is called.
        pattern: Its regular expression.
        lexer: The name of the pattern, if it has one.
        ranks: A `.tiktoken` file; None where ranks do not say it all.
        tokenizer: A `tokenizer.json`; None if there is none.
        published: Whether hotgrid knows it by its name.
    """

    name: str
    pattern: str
    lexer: str | None
    ranks: str | None
    tokenizer: str | None
    published: bool


@dataclass(frozen=True)
class Job:
    """What one process is to do.

    Attributes:
        contestant: A name of `CONTESTANTS`.
        subject: The encoding.
        texts: A JSON file with a list of texts; None to load only.
        form: `list` for Python integers, `flat` for arrays.
        threads: How many.
        passes: The most passes behind the first one.
        seconds: No pass begins later than this behind the first one.
        each: Every text is a pass of its own, so that none is seen twice.
        clock: `wall`, or `cpu` for the time of the process, which neighbours disturb less.
    """

    contestant: str
    subject: Subject
    texts: str | None = None
    form: str = "list"
    threads: int = 1
    passes: int = 3
    seconds: float = 5.0
    each: bool = False
    clock: str = "wall"


def measured(
    job: Job, *, python: str = sys.executable, environ: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Do a job in a new process.

    Returns:
        `absent` with the reason, or `failed` with the reason, or `version`, `load` (seconds),
        `peak` (bytes of memory after loading), and if there were texts `first` and `best`
        (seconds of the first pass and of the best later one), `tokens` and `digest`.
    """
    threads = str(job.threads)
    told = {
        "RAYON_NUM_THREADS": threads,
        "HOTGRID_THREADS": threads,
        "TOKENIZERS_PARALLELISM": "true" if job.threads > 1 else "false",
    }
    done = subprocess.run(
        [python, __file__],
        input=json.dumps(asdict(job)),
        env={**os.environ, **told, **(environ or {})},
        capture_output=True,
        text=True,
        check=False,
    )
    try:
        return json.loads(done.stdout.splitlines()[-1])
    except (ValueError, IndexError):
        lines = done.stderr.strip().splitlines() or [f"ended with {done.returncode}"]
        return {"failed": lines[-1][:200]}


def _hotgrid(subject: Subject, tokens: Any) -> Forms:
    if subject.published:
        enc = tokens.get_encoding(subject.name)
    elif subject.ranks:
        enc = tokens.load_tiktoken(subject.ranks, pat_str=subject.pattern)
    else:
        enc = tokens.load_huggingface(subject.tokenizer or "")
    return {
        "list": lambda texts, threads: enc.encode_ordinary_batch(texts, num_threads=threads),
        "flat": lambda texts, threads: tuple(
            enc.encode_flat(texts, num_threads=threads, disallowed_special=())
        ),
    }


def _tiktoken(subject: Subject, tiktoken: Any) -> Forms:
    load = importlib.import_module("tiktoken.load").load_tiktoken_bpe
    os.environ["TIKTOKEN_CACHE_DIR"] = ""  # the file is here; no copy of it
    enc = tiktoken.Encoding(
        subject.name,
        pat_str=subject.pattern,
        mergeable_ranks=load(_ranks(subject)),
        special_tokens={},
    )

    def lists(texts: list[str], threads: int) -> Any:
        if threads > 1:
            return enc.encode_ordinary_batch(texts, num_threads=threads)
        return [enc.encode_ordinary(text) for text in texts]

    def arrays(texts: list[str], threads: int) -> Any:
        if threads > 1:
            from concurrent.futures import ThreadPoolExecutor

            with ThreadPoolExecutor(threads) as pool:
                return list(pool.map(enc.encode_to_numpy, texts))
        return [enc.encode_to_numpy(text) for text in texts]

    return {"list": lists, "flat": arrays}


def _tokenizers(subject: Subject, tokenizers: Any) -> Forms:
    if subject.tokenizer is None:
        raise ValueError("there is no tokenizer.json")
    enc = tokenizers.Tokenizer.from_file(subject.tokenizer)
    return {
        "list": lambda texts, threads: [
            found.ids for found in enc.encode_batch_fast(texts, add_special_tokens=False)
        ]
    }


def _wordchipper(subject: Subject, wordchipper: Any) -> Forms:
    options = wordchipper.TokenizerOptions.default()
    options.set_parallel(int(os.environ.get("RAYON_NUM_THREADS", "1")) > 1)
    options.set_accelerated_lexers(True)
    with tempfile.TemporaryDirectory(prefix="hotgrid-rival-") as folder:
        place = Path(folder, "openai", subject.name)
        place.mkdir(parents=True)
        (place / f"{subject.name}.tiktoken").write_bytes(Path(_ranks(subject)).read_bytes())
        os.environ["WORDCHIPPER_CACHE_DIR"] = folder
        enc = wordchipper.Tokenizer.from_pretrained(f"openai:{subject.name}", options)
    return {"list": lambda texts, threads: enc.encode_batch(texts)}


def _gigatoken(subject: Subject, gigatoken: Any) -> Forms:
    schemes = {"gpt2": "gpt2", "cl100k": "cl100k", "o200k": "o200k", "qwen2": "qwen2"}
    if subject.lexer not in schemes:
        raise ValueError("it has no such pattern")
    enc = gigatoken.Tokenizer.from_tiktoken(
        _ranks(subject), pretokenizer=schemes[subject.lexer], special_tokens={}
    )
    return {
        "list": lambda texts, threads: enc.encode_batch_list(texts, parallel=threads > 1),
        "flat": lambda texts, threads: enc.encode_batch(texts, parallel=threads > 1),
    }


def _fastokens(subject: Subject, fastokens: Any) -> Forms:
    ranks = _ranks(subject)
    try:
        # By its name it takes a lexer of its own, which is several times faster.
        enc = fastokens.Tokenizer.from_tiktoken(ranks, encoding=subject.name)
    except ValueError:
        enc = fastokens.Tokenizer.from_tiktoken(
            ranks, pattern=subject.pattern, special_tokens={}
        )
    return {
        "list": lambda texts, threads: [
            found.ids for found in enc.encode_batch(texts, split_special_tokens=True)
        ],
        "flat": lambda texts, threads: enc.encode_batch_flat(texts, split_special_tokens=True),
    }


def _quicktok(subject: Subject, quicktok: Any) -> Forms:
    enc = quicktok.get_encoding(subject.name)

    def lists(texts: list[str], threads: int) -> Any:
        if threads == 1:
            return [enc.encode_ordinary(text) for text in texts]
        tokens, offsets = enc.encode_batch(texts, threads)
        return [tokens[a:b].tolist() for a, b in pairwise(offsets.tolist())]

    return {"list": lists, "flat": enc.encode_batch}


def _bpe_openai(subject: Subject, bpe_openai: Any) -> Forms:
    enc = bpe_openai.get_encoding(subject.name)

    def lists(texts: list[str], threads: int) -> Any:
        if threads > 1:
            return enc.encode_ordinary_batch(texts, num_threads=threads)
        return [enc.encode_ordinary(text) for text in texts]

    return {"list": lists}


def _ranks(subject: Subject) -> str:
    if subject.ranks is None:
        raise ValueError("it cannot join by a list of pairs")
    return subject.ranks


# Name: what to install, what to import, and how it is made; the judge comes second.
CONTESTANTS: Mapping[str, tuple[str, str, Callable[[Subject, Any], Forms]]] = MappingProxyType(
    {
        "hotgrid": ("hotgrid", "hotgrid.tokens", _hotgrid),
        "tiktoken": ("tiktoken", "tiktoken", _tiktoken),
        "tokenizers": ("tokenizers", "tokenizers", _tokenizers),
        "wordchipper": ("wordchipper", "wordchipper", _wordchipper),
        "gigatoken": ("gigatoken", "gigatoken", _gigatoken),
        "fastokens": ("fastokens", "fastokens", _fastokens),
        "quicktok": ("quicktok-v1", "quicktok", _quicktok),
        "bpe-openai": ("bpe-openai", "bpe_openai", _bpe_openai),
    }
)


def _perform(job: Job) -> dict[str, Any]:
    package, module, make = CONTESTANTS[job.contestant]
    _keep_to_cores(job.threads)
    # Not counted as loading, as a program imports once.
    library = importlib.import_module(module)
    begin = time.perf_counter()
    forms = make(job.subject, library)
    encode = forms.get(job.form)
    next(iter(forms.values()))(["x"], 1)
    found: dict[str, Any] = {"load": time.perf_counter() - begin, "peak": _peak()}
    try:
        found["version"] = importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        found["version"] = "from source"
    if job.texts is None:
        return found
    if encode is None:
        return {"failed": f"it has no {job.form} output"}
    import numpy as np  # noqa: F401  arrays need it, and it takes longer than the texts

    texts = json.loads(Path(job.texts).read_text("utf-8"))
    return found | (_once_each(texts, encode, job) if job.each else _again(texts, encode, job))


def _keep_to_cores(count: int) -> None:
    """Limit the cores to the requested threads: some libraries ignore the setting."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-count:])


def _again(texts: list[str], encode: Encode, job: Job) -> dict[str, Any]:
    """The same texts several times: a first pass, and at least one more."""
    times, digests, count = [], set(), 0
    start = time.perf_counter()
    while len(times) < 2 or (
        len(times) <= job.passes and time.perf_counter() - start < job.seconds
    ):
        tokens, taken = _timed(encode, texts, job)
        times.append(taken)
        if len(times) < 3:
            count, digest = _digest(tokens)
            digests.add(digest)
        del tokens
    if len(digests) != 1:
        return {"failed": "it gives other tokens the second time"}
    return {
        "first": times[0],
        "best": min(times[1:]),
        "tokens": count,
        "digest": digests.pop(),
    }


def _once_each(texts: list[str], encode: Encode, job: Job) -> dict[str, Any]:
    """One text after another."""
    times, digests, count = [], [], 0
    for text in texts:
        tokens, taken = _timed(encode, [text], job)
        times.append(taken)
        found, digest = _digest(tokens)
        count += found
        digests.append(digest)
    return {
        "first": times[0],
        "best": min(times[1:], default=times[0]),
        "tokens": count,
        "digest": " ".join(digests),
    }


def _timed(encode: Encode, texts: list[str], job: Job) -> tuple[Any, float]:
    clock = time.process_time if job.clock == "cpu" else time.perf_counter
    begin = clock()
    tokens = encode(texts, job.threads)
    return tokens, clock() - begin


def _digest(tokens: Any) -> tuple[int, str]:
    """How many tokens there are, and a digest of them and of the lengths of texts."""
    flat, lengths = _plain(tokens)
    seen = hashlib.sha256(flat)
    seen.update(array("q", lengths).tobytes())
    return len(flat) // 4, seen.hexdigest()


def _plain(tokens: Any) -> tuple[bytes, list[int]]:
    """Tokens of every contestant as bytes of `uint32`, and the length of each text."""
    import numpy as np

    if type(tokens).__module__.startswith("awkward"):
        awkward = importlib.import_module("awkward")

        flat = np.asarray(awkward.flatten(tokens), np.uint32)
        return flat.tobytes(), np.asarray(awkward.num(tokens)).tolist()
    if isinstance(tokens, tuple):
        flat, offsets = tokens
        if isinstance(flat, bytes):
            offsets = np.frombuffer(offsets, np.uint64)
        else:
            flat = np.asarray(flat, np.uint32).tobytes()
        return flat, np.diff(np.asarray(offsets, np.int64)).tolist()
    return b"".join(np.asarray(row, np.uint32).tobytes() for row in tokens), list(
        map(len, tokens)
    )


def _peak() -> int:
    """The peak memory of this process in bytes; 0 if unknown."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) * 1024
    except (OSError, StopIteration):
        return 0


def _answer() -> None:
    told = json.loads(sys.stdin.read())
    job = Job(**{**told, "subject": Subject(**told["subject"])})
    try:
        found = _perform(job)
    except ImportError as problem:
        found = {"absent": str(problem)}
    except BaseException as problem:  # noqa: BLE001  a rival may fail in any way, also by a panic
        found = {"failed": f"{type(problem).__name__}: {problem}"[:200]}
    sys.stdout.write(f"\n{json.dumps(found)}\n")


if __name__ == "__main__":
    _answer()
