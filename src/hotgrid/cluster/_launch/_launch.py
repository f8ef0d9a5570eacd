"""Starting ranks of this program on this machine, and restarting them."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType, TracebackType

from hotgrid.config import logger
from hotgrid.errors import CommunicationError

_LOST = CommunicationError.exit_code
_INTERRUPTED = 128 + signal.SIGINT
# So that all have ended within ten seconds.
_PATIENCE = 8.0
_LOOK_EVERY = 0.05
_PARENT = "LAUNCHER_OF_HOTGRID"


def launched() -> bool:
    """Whether this process is one of several that a launcher started.

    Example:
        >>> launched()
        False
    """
    return int(os.environ.get("WORLD_SIZE", "1")) > 1


def is_primary() -> bool:
    """True on rank 0, which prints and writes for all; also without a launcher.

    Example:
        >>> is_primary()
        True
    """
    return int(os.environ.get("RANK", "0")) == 0


def restarts() -> int:
    """How often the launcher has restarted the ranks of this host.

    Example:
        >>> restarts()
        0
    """
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))


def job() -> str | None:
    """The launcher's name of this job; the same after a restart. None if it has none.

    Example:
        >>> job() is None
        True
    """
    name = os.environ.get("TORCHELASTIC_RUN_ID", "none")
    if name not in ("", "none"):
        return name
    # torchrun without a name for its job: it is the parent of every rank, and outlives them.
    return _parent() if "TORCHELASTIC_RESTART_COUNT" in os.environ else None


def _parent() -> str:
    """A unique name of the parent process: its number and start time."""
    parent = os.getppid()
    try:
        begun = Path(f"/proc/{parent}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        begun = "unknown"
    return f"{socket.gethostname()}-{parent}-{begun}"


def cores() -> int:
    """Return how many processor cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def launch(
    ranks: int,
    arguments: Sequence[str],
    *,
    restarts: int = 0,
    descriptors: Sequence[int] = (),
) -> int:
    """Run `hotgrid` with these arguments as several ranks on this machine, to the end.

    Cores are divided among the ranks, unless `OMP_NUM_THREADS` is set. When a
    rank fails, the others have eight seconds to end. When none of them failed by itself but
    one was killed, or lost another, all are restarted.

    Ranks run in a session of their own, so a signal to the launcher alone and Ctrl-C do the
    same: SIGTERM, SIGINT and SIGTSTP are passed on to every rank. After SIGINT ranks have eight
    seconds to end, then they are killed.

    Args:
        ranks: How many.
        arguments: What follows `hotgrid` on the command line.
        restarts: How often they may be started again.
        descriptors: Open files that the ranks inherit.

    Returns:
        The exit code: 0 if all ranks ended well, 75 if one was lost and no restart is
        left, 143 after SIGTERM and 130 after SIGINT if they did not end well, else what the
        first rank to fail returned.
    """
    from torch.distributed import TCPStore  # pyright: ignore[reportPrivateImportUsage]

    store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    name = uuid.uuid4().hex
    with _Signals() as signals:
        for attempt in range(restarts + 1):
            shared = _environment(ranks, store.port, name, attempt, restarts)
            signals.concern(_started(ranks, arguments, shared, descriptors))
            failures = _failures(signals)
            if not failures and not signals.killed:
                return 0
            if signals.code:
                _tell_of_interrupt(signals)
                return signals.code
            own = [code for code in failures.values() if code > 0 and code != _LOST]
            if own:
                return own[0]
            _tell(failures, attempt, restarts)
    return _LOST


def follow_launcher() -> None:
    """End this rank soon after the launcher that started it, however that one ended.

    A killed launcher cannot notify its ranks, and they would continue writing where the
    next run begins.
    """
    parent = int(os.environ.get(_PARENT, "0"))
    if parent:
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(_LOST)


def _environment(ranks: int, port: int, name: str, attempt: int, most: int) -> dict[str, str]:
    """The variables that torchrun would set, so that ranks need not know what started them."""
    defaults = {"OMP_NUM_THREADS": str(max(1, cores() // ranks))}
    return {
        **defaults,
        **only_this_host(),
        **os.environ,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "WORLD_SIZE": str(ranks),
        "LOCAL_WORLD_SIZE": str(ranks),
        "GROUP_RANK": "0",
        "GROUP_WORLD_SIZE": "1",
        "TORCHELASTIC_USE_AGENT_STORE": "True",
        "TORCHELASTIC_RESTART_COUNT": str(attempt),
        "TORCHELASTIC_MAX_RESTARTS": str(most),
        "TORCHELASTIC_RUN_ID": name,
        _PARENT: str(os.getpid()),
    }


def only_this_host() -> dict[str, str]:
    """Variables for ranks of one machine: no network, and no name of it that resolves."""
    there = "lo" in [interface for _, interface in socket.if_nameindex()]
    return {"GLOO_SOCKET_IFNAME": "lo"} if there else {}


def _started(
    ranks: int, arguments: Sequence[str], shared: Mapping[str, str], descriptors: Sequence[int]
) -> list[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "hotgrid", *arguments]
    # In one session with the launcher, Ctrl-C would reach the ranks twice.
    return [
        subprocess.Popen(
            command,
            env={**shared, "RANK": str(r), "LOCAL_RANK": str(r)},
            start_new_session=True,
            pass_fds=descriptors,
        )
        for r in range(ranks)
    ]


def _failures(signals: "_Signals") -> dict[int, int]:
    """Wait for all ranks; return the failures, in the order in which they happened."""
    failures: dict[int, int] = {}
    left = dict(enumerate(signals.started))
    deadline = None
    while left:
        for rank, process in tuple(left.items()):
            code = process.poll()
            if code is None:
                continue
            del left[rank]
            # Ranks that were ended from here are not a cause.
            if code and not (deadline is not None and time.monotonic() > deadline):
                failures[rank] = code
        if deadline is None and (failures or signals.code == _INTERRUPTED):
            deadline = time.monotonic() + _PATIENCE
        if deadline is not None and time.monotonic() > deadline:
            signals.kill(left)
        time.sleep(_LOOK_EVERY)
    return failures


def _tell_of_interrupt(signals: "_Signals") -> None:
    """Report SIGINT, unless the first rank has done so."""
    if signals.code != _INTERRUPTED or signals.started[0].returncode == _INTERRUPTED:
        return
    ranks = ", ".join(map(str, sorted(signals.killed)))
    killed = f"; rank {ranks} did not end within {_PATIENCE:g} s and was killed"
    logger("cluster").error(
        "interrupted%s; `--resume` continues from the last checkpoint, if there is one",
        killed if ranks else "",
    )


def _tell(failures: Mapping[int, int], attempt: int, most: int) -> None:
    rank, code = min(failures.items(), key=lambda item: item[1])
    what = (
        "lost another rank" if code == _LOST else f"was ended by {signal.Signals(-code).name}"
    )
    if attempt < most:
        logger("cluster").warning(
            "rank %d %s; all ranks are restarted (%d of %d)", rank, what, attempt + 1, most
        )
    else:
        logger("cluster").error(
            "rank %d %s, and no restart is left; `--resume` continues from the last "
            "checkpoint, if there is one",
            rank,
            what,
        )


class _Signals:
    """Forwards signals to the ranks, and records them.

    Attributes:
        started: The ranks.
        code: The exit code of the signal that was received; 0 if none was.
        killed: The ranks that had to be killed.
    """

    def __init__(self) -> None:
        self.started: list[subprocess.Popen[bytes]] = []
        self.code = 0
        self.killed: set[int] = set()

    def __enter__(self) -> "_Signals":
        self._before = {
            signal.SIGTERM: signal.signal(signal.SIGTERM, self._hear),
            signal.SIGINT: signal.signal(signal.SIGINT, self._hear),
            signal.SIGTSTP: signal.signal(signal.SIGTSTP, self._pause),
        }
        return self

    def concern(self, started: list[subprocess.Popen[bytes]]) -> None:
        """From now on forward signals to these, also one received while they started."""
        self.started = started
        self.killed = set()
        if self.code:
            self._pass_on(self.code - 128)

    def kill(self, ranks: Mapping[int, subprocess.Popen[bytes]]) -> None:
        """End ranks that did not end by themselves."""
        for rank, process in ranks.items():
            self.killed.add(rank)
            process.kill()

    def _hear(self, number: int, frame: FrameType | None) -> None:
        self.code = 128 + number
        self._pass_on(number)

    def _pause(self, number: int, frame: FrameType | None) -> None:
        """Stop the ranks and this process, until it is continued."""
        self._pass_on(signal.SIGSTOP)
        os.kill(os.getpid(), signal.SIGSTOP)
        self._pass_on(signal.SIGCONT)

    def _pass_on(self, number: int) -> None:
        for process in self.started:
            process.send_signal(number)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for process in self.started:
            process.kill()
        for each, handler in self._before.items():
            signal.signal(each, handler)
