"""A save that runs in a thread, and whose failure is never lost."""

import contextvars
import threading
from collections.abc import Callable

from hotgrid.config import logger


class Flight:
    """Work in a thread of its own. The interpreter does not exit before it is done."""

    def __init__(self, work: Callable[[], object], failure: str) -> None:
        self._work, self._failure = work, failure
        self._problem: BaseException | None = None
        # The settings in force belong to the context; a new thread would not have them.
        context = contextvars.copy_context()
        self._thread = threading.Thread(
            target=lambda: context.run(self._run), name="hotgrid-checkpoint", daemon=False
        )
        self._thread.start()

    def _run(self) -> None:
        try:
            self._work()
        except BaseException as problem:  # noqa: BLE001  it is raised where it is waited for
            self._problem = problem
            logger("store").error("%s: %s", self._failure, problem)

    def land(self) -> None:
        """Wait for the end; raise what the work raised."""
        self._thread.join()
        if self._problem is not None:
            raise self._problem
