"""Comparing calls between ranks, so that a mismatch is an error and not a wrong number.

A kind of call is its name with the shape, dtype and options that must be equal on all ranks.
The first time that a rank makes a call of some kind, it compares it with the others: every
rank sends a header to rank 0, which answers all of them. Headers are messages with a tag of
their own, so they never mix with the data of a collective, and a rank that has died is
noticed at once.

Kinds are stored only after all ranks have agreed, so all ranks store the same ones.
A rank that makes a known kind while another makes a new one therefore makes a different call.
It does not take part in the comparison at first, but waits in its collective. For that case
each comparison is announced in the group's store under the number of the call. A rank that
has waited for a while looks there, and joins the comparison with what it called under that
number. Then all ranks raise.
"""

import contextlib
import hashlib
import struct
import threading
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any, NamedTuple, cast
from weakref import WeakKeyDictionary

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed import (
    PrefixStore,  # pyright: ignore[reportPrivateImportUsage]
    Store,  # pyright: ignore[reportPrivateImportUsage]
)

from hotgrid.errors import ArgumentError, CommunicationError

Call = tuple[Any, ...]

# Far above the tags of margins and of most programs.
_TAG = 0x48_67_72_64
_HEADER = struct.Struct("<q?16s487s")
_LATE, _USABLE = b"late", b"fine"
_MOST_LINES = 16
# A rank can be ahead by calls that do not wait, such as a broadcast from itself.
_REMEMBERED = 16
_MOST_KINDS = 10_000
_LOOK_EVERY = timedelta(seconds=1)


class _Header(NamedTuple):
    number: int
    late: bool
    digest: bytes
    text: str

    def packed(self) -> Tensor:
        text = self.text.encode()
        data = _HEADER.pack(self.number, self.late, self.digest, text)
        return torch.frombuffer(bytearray(data), dtype=torch.uint8)

    @staticmethod
    def unpacked(data: Tensor) -> "_Header":
        number, late, digest, text = _HEADER.unpack(bytes(data.tolist()))
        return _Header(number, late, digest, text.rstrip(b"\0").decode(errors="replace"))


class _Watch:
    """Checks every second whether a comparison of one of these calls was announced.

    It does so in its own thread and over its own connection: if the network is gone, a
    request to the store has no time limit, and the collective has one.
    """

    def __init__(self, store: Store, numbers: Iterable[int]) -> None:
        self.found: int | None = None
        self._store = store
        self._numbers = tuple(numbers)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> "_Watch":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        # A pending request is answered at once, unless the network is gone.
        self._thread.join(_LOOK_EVERY.total_seconds())

    def _look(self) -> None:
        with contextlib.suppress(RuntimeError):
            while not self._over.is_set():
                for number in self._numbers:
                    if self._store.check([_key(number)]):
                        self.found = number
                        return
                self._over.wait(_LOOK_EVERY.total_seconds())


class CallCheck:
    """The collectives that a process group has made, and the kinds that were compared.

    It never keeps the group itself, which would keep the group's connections open.
    """

    def __init__(self, group: dist.ProcessGroup) -> None:
        self._store = PrefixStore("hotgrid-calls", cast(Any, group.get_group_store()).clone())
        self._number = 0
        self._known: set[Call] = set()
        # Calls that were not compared; None for those that were.
        self._recent: deque[Call | None] = deque(maxlen=_REMEMBERED)
        self._broken = ""

    def passes(self, call: Call) -> bool:
        """Count a call; return whether its kind has been compared before."""
        self._number += 1
        known = call in self._known
        self._recent.append(call if known else None)
        return known

    def compare(self, group: dist.ProcessGroup, call: Call) -> None:
        """Compare the call that was counted last with those of the other ranks.

        Raises:
            ArgumentError: Ranks make different calls. All ranks raise it.
            CommunicationError: An earlier mismatch has left the group in an unknown state.
            RuntimeError: The backend lost a rank.
        """
        self._recent[-1] = None
        if self._broken:
            raise CommunicationError(
                "this group of ranks cannot be used any more, because of an earlier mismatch: "
                + self._broken
            )
        self._exchange(group, self._number, call, late=False)
        # All ranks know the same kinds, so all of them clear them at the same call.
        if len(self._known) >= _MOST_KINDS:
            self._known.clear()
        self._known.add(call)

    def wait(self, group: dist.ProcessGroup, work: Any) -> None:
        """Wait for a collective on the CPU; join a comparison that others wait for.

        Raises:
            ArgumentError: Another rank makes a different call. All ranks raise it.
            RuntimeError: The backend lost a rank.
        """
        if _ended(work):
            return
        first = self._number - len(self._recent) + 1
        calls = {n: call for n, call in enumerate(self._recent, first) if call is not None}
        with _Watch(self._store, calls) as watch:
            while not _ended(work):
                if watch.found is not None:
                    self._exchange(group, watch.found, calls[watch.found], late=True)

    def _exchange(self, group: dist.ProcessGroup, number: int, call: Call, late: bool) -> None:
        self._store.set(_key(number), "")
        header = _header(number, late, call)
        if group.rank() == 0:
            verdict = self._judge(group, header)
        else:
            group.send([header.packed()], 0, _TAG).wait()
            length = torch.zeros(1, dtype=torch.int64)
            group.recv([length], 0, _TAG).wait()
            answer = torch.zeros(int(length), dtype=torch.uint8)
            if len(answer):
                group.recv([answer], 0, _TAG).wait()
            verdict = bytes(answer.tolist())
        if verdict:
            text = verdict[len(_LATE) :].decode()
            if verdict.startswith(_LATE):
                # Somewhere a collective is still pending, and would take the next data.
                self._broken = text
                self._known.clear()
            raise ArgumentError(text)

    def _judge(self, group: dist.ProcessGroup, own: _Header) -> bytes:
        """Receive the headers of all other ranks, and send them the verdict."""
        others = range(1, group.size())
        data = [torch.zeros(_HEADER.size, dtype=torch.uint8) for _ in others]
        for work in [group.recv([x], r, _TAG) for r, x in zip(others, data, strict=True)]:
            work.wait()
        headers = [own, *map(_Header.unpacked, data)]
        for number in {each.number for each in headers}:
            self._store.delete_key(_key(number))
        verdict = _verdict(headers)
        answer = [torch.tensor([len(verdict)])]
        if verdict:
            answer.append(torch.frombuffer(bytearray(verdict), dtype=torch.uint8))
        for work in [group.send([x], rank, _TAG) for rank in others for x in answer]:
            work.wait()
        return verdict


_OF_GROUP: WeakKeyDictionary[dist.ProcessGroup, CallCheck] = WeakKeyDictionary()


def call_check(group: dist.ProcessGroup) -> CallCheck | None:
    """Return the check of a group, shared by all its communicators.

    None if nothing can differ, or if the group has no backend for the CPU, over which
    headers could travel.
    """
    if group.size() == 1:
        return None
    if group not in _OF_GROUP:
        try:
            group._get_backend(torch.device("cpu"))
        except RuntimeError:
            return None
        _OF_GROUP[group] = CallCheck(group)
    return _OF_GROUP[group]


def _ended(work: Any) -> bool:
    """Wait for a collective, but not for long; return whether it has ended."""
    try:
        work.wait(_LOOK_EVERY)
    except RuntimeError:
        if not work.is_completed():
            return False
        work.wait()
    return True


def mismatch(calls: Sequence[str]) -> str:
    """Return the message about different calls, given one for each rank."""
    lines = [f"  rank {rank}: {text}" for rank, text in enumerate(calls)]
    if len(lines) > _MOST_LINES:
        count = Counter(calls)
        first = {text: rank for rank, text in reversed([*enumerate(calls)])}
        lines = [
            f"  rank {first[text]} and {often - 1} more: {text}"
            for text, often in count.most_common(_MOST_LINES)
        ]
    return "\n".join(["ranks make different calls:", *lines])


def expect_splits(sizes: Sequence[Sequence[Sequence[int]]]) -> None:
    """Raise unless every rank sends to each what that expects.

    Args:
        sizes: For every rank, the numbers of elements that it sends and that it expects.

    Raises:
        ArgumentError: Two ranks differ. All ranks find the same two.
    """
    for rank, (sent, _) in enumerate(sizes):
        for peer, (_, expected) in enumerate(sizes):
            if sent[peer] != expected[rank]:
                raise ArgumentError(
                    f"ranks make different calls of all_to_all: rank {rank} sends "
                    f"{sent[peer]} elements to rank {peer}, which expects {expected[rank]}; "
                    "`split_sizes` of a rank and `concat_sizes` of the others must match"
                )


def described(call: Call) -> str:
    """Return a call as text: its name and its facts, each after its label if it has one."""
    parts = [tuple(each) if isinstance(each, torch.Size) else each for each in call]
    return ", ".join(map(str, parts)).replace("=, ", "=")


def _header(number: int, late: bool, call: Call) -> _Header:
    text = described(call)
    return _Header(number, late, hashlib.sha256(text.encode()).digest()[:16], text)


def _verdict(headers: Sequence[_Header]) -> bytes:
    """Return None if all are equal, else the error that all ranks raise."""
    if len({(each.number, each.digest) for each in headers}) == 1:
        return b""
    counted = len({each.number for each in headers}) > 1
    calls = [f"call {each.number}: {each.text}" if counted else each.text for each in headers]
    late = counted or any(each.late for each in headers)
    return (_LATE if late else _USABLE) + mismatch(calls).encode()


def _key(number: int) -> str:
    return f"call-{number}"
