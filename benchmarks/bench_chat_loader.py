"""How fast text becomes batches of tokens: `hotgrid chat loader-bench`, kept as a result.

    python benchmarks/bench_chat_loader.py DATA ... [--seconds 10]

DATA are files or folders of text, such as those of Debian's documentation packages. Seconds
of the processor count, so other work on the machine changes little.
"""

import json
import subprocess
import sys

from options import parser
from report import report


def main() -> None:
    """Measure rows of two lengths, with one thread and with all."""
    options = parser(__doc__, devices=("cpu",))
    options.add_argument("data", nargs="+")
    options.add_argument("--seconds", type=float, default=10.0)
    asked = options.parse_args()
    rows = []
    for context in (512, 2048):
        for threads in (1, None):
            command = [sys.executable, "-m", "hotgrid", "chat", "loader-bench", *asked.data]
            command += ["--json", f"--context={context}", f"--seconds={asked.seconds}"]
            command += [] if threads is None else [f"--threads={threads}"]
            done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
            found = json.loads(done.stdout)
            rows.append(
                {
                    "context": context,
                    "threads": threads or "all",
                    "tokens/s": round(found["tokens_per_second"]),
                    "tokens/s per core": round(found["tokens_per_second_per_core"]),
                    "bytes/s": round(found["bytes_per_second"]),
                    "lost": found["lost_by_packing"],
                    "cores for 530,000 tokens/s": round(
                        found["cores_for_530000_tokens_per_second"], 3
                    ),
                }
            )
    report("chat-loader", rows)


if __name__ == "__main__":
    main()
