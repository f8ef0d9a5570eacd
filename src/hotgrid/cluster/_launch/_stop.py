"""Stop requests: SIGTERM, as schedulers send it."""

import signal
import threading
from types import FrameType, TracebackType


class StopRequest:
    """Whether SIGTERM was received; inside the block it does not end the process.

    Args:
        heeded: Whether the run checks it; otherwise the signal has its usual effect.

    Example:
        >>> with StopRequest() as stop:
        ...     stop()
        False
    """

    def __init__(self, heeded: bool = True) -> None:
        # Only the main thread of a program receives signals.
        self._heeded = heeded and threading.current_thread() is threading.main_thread()
        self._came = False

    def __call__(self) -> bool:
        """Whether it was received."""
        return self._came

    def __enter__(self) -> "StopRequest":
        if self._heeded:
            self._before = signal.signal(signal.SIGTERM, self._received)
        return self

    def _received(self, number: int, frame: FrameType | None) -> None:
        self._came = True

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._heeded:
            signal.signal(signal.SIGTERM, self._before)
