"""What every benchmark shares: timing a call, naming the machine, keeping the figures."""

import datetime
import json
import os
import platform
import sys
import time
import timeit
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"


def nanoseconds(statement: str, names: Mapping[str, Any], repeats: int = 21) -> float:
    """The shortest time of one execution of a statement, the empty loop taken off.

    The minimum is the figure that repeats on a shared machine; everything else
    measures the neighbours.
    """
    timer = timeit.Timer(statement, globals=dict(names))
    number, _ = timer.autorange()
    number = max(1, number // 20)
    empty = min(timeit.Timer("pass").repeat(repeats, number)) / number
    return (min(timer.repeat(repeats, number)) / number - empty) * 1e9


def once(call: Callable[[], object]) -> float:
    """The seconds of one call, until the work of a GPU is done where there is one."""
    import torch

    wait = torch.cuda.synchronize if torch.cuda.is_available() else lambda: None
    wait()
    begin = time.perf_counter()
    call()
    wait()
    return time.perf_counter() - begin


def machine() -> dict[str, str]:
    """Where the figures come from."""
    return {
        "processor": _processor(),
        "cores": str(os.cpu_count()),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
    }


def report(name: str, rows: Sequence[Mapping[str, Any]], **facts: Any) -> None:
    """Print the rows as a table and keep them in results/<name>-<processor>.json."""
    where = {**machine(), **facts}
    columns = list(dict.fromkeys(key for row in rows for key in row))
    cells = [[_text(row.get(column)) for column in columns] for row in rows]
    widths = [max(map(len, column)) for column in zip(columns, *cells, strict=True)]
    print(f"{name}: " + ", ".join(f"{key} {value}" for key, value in where.items()))
    for line in [columns, *cells]:
        print(
            "  "
            + "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        )
    RESULTS.mkdir(exist_ok=True)
    slug = "".join(c if c.isalnum() else "-" for c in where["processor"].lower()).strip("-")
    path = RESULTS / f"{name}-{slug}.json"
    text = json.dumps({"name": name, "machine": where, "rows": list(rows)}, indent=2)
    path.write_text(text + "\n")
    print(f"kept in benchmarks/results/{path.name}")


def absent(name: str, problem: Exception) -> None:
    """Say that a peer does not take part, and why."""
    print(f"  {name} is absent: {problem}", file=sys.stderr)


def same(results: Mapping[str, Callable[[], Any]], expected: Any) -> None:
    """Stop unless every contestant returns the expected result."""
    for name, call in results.items():
        if (found := call()) != expected:
            sys.exit(f"{name} gives {found!r} where {expected!r} is right; nothing was timed")


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    named = {
        "0x41-0xd0c": "Neoverse-N1",
        "0x41-0xd40": "Neoverse-V1",
        "0x41-0xd4f": "Neoverse-V2",
    }
    try:
        fields = dict(
            line.split(":", 1)
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if ":" in line
        )
        fields = {key.strip(): value.strip() for key, value in fields.items()}
        part = f"{fields['CPU implementer']}-{fields['CPU part']}"
        return named.get(part, part)
    except (OSError, KeyError):
        return platform.machine()


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.2f}"
    return "" if value is None else str(value)
