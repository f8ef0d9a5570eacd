"""The memory of a process and of those that it has started, over time."""

import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

_EVERY = 0.1
_PAGES_IN_MIB = 256


class Memory:
    """Reads the resident memory of processes while it is open.

    Args:
        process: The number of the process.

    Attributes:
        seen: For each look the seconds since the first, the MiB of the process, and those of
            the largest that it has started.
    """

    def __init__(self, process: int) -> None:
        self.seen: list[tuple[float, float, float]] = []
        self._process, self._over = process, threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        begin = time.monotonic()
        while not self._over.wait(_EVERY):
            own = _mib(self._process)
            others = max(map(_mib, _started_by(self._process)), default=0.0)
            self.seen.append((time.monotonic() - begin, own, others))

    def tenths(self) -> list[dict[str, Any]]:
        """The largest of each tenth of the time, as rows of a table."""
        end = self.seen[-1][0] if self.seen else 0.0
        rows = []
        for number in range(10):
            low, high = end * number / 10, end * (number + 1) / 10
            some = [each for each in self.seen if low < each[0] <= high] or [(0.0, 0.0, 0.0)]
            rows.append(
                {
                    "until second": round(high),
                    "process, MiB": round(max(each[1] for each in some)),
                    "largest worker, MiB": round(max(each[2] for each in some)),
                }
            )
        return rows


def _mib(process: int) -> float:
    try:
        return int(Path(f"/proc/{process}/statm").read_text().split()[1]) / _PAGES_IN_MIB
    except OSError:
        return 0.0


def _started_by(process: int) -> list[int]:
    found: list[int] = []
    for path in Path(f"/proc/{process}/task").glob("*/children"):
        try:
            found += map(int, path.read_text().split())
        except OSError:
            continue
    return found
