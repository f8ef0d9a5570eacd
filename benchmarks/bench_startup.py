"""Claim: `hotgrid --help` takes under 0.3 s, and the light packages do not import torch.

Each line starts a fresh Python; the best of nine is kept.

    python benchmarks/bench_startup.py
"""

import subprocess
import sys
import time

from options import parser
from report import report

ROWS = {
    "python -c pass": ["-c", "pass"],
    "import hotgrid": ["-c", "import hotgrid"],
    "import hotgrid.contracts": ["-c", "import hotgrid.contracts"],
    "import hotgrid.config": ["-c", "import hotgrid.config"],
    "hotgrid --help": ["-m", "hotgrid", "--help"],
    "hotgrid config show": ["-m", "hotgrid", "config", "show"],
    "import cyclopts": ["-c", "import cyclopts"],
    "import torch": ["-c", "import torch"],
}


def seconds(arguments: list[str], repeats: int = 9) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        subprocess.run([sys.executable, *arguments], stdout=subprocess.DEVNULL, check=True)
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    parser(__doc__, devices=("cpu",)).parse_args()
    rows = [
        {"what": name, "s": round(seconds(arguments), 3)} for name, arguments in ROWS.items()
    ]
    report("startup", rows)


if __name__ == "__main__":
    main()
