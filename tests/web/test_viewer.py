"""One viewer: the latest frame, a window of two, and a page that does not read."""

import asyncio
import json
from typing import Any

import pytest

from hotgrid.web import MessageError, Viewer


class Page:
    """A socket whose page reads only on request."""

    def __init__(self) -> None:
        self.got: list[Any] = []
        self.reads = asyncio.Event()
        self.reads.set()
        self.sends: asyncio.Queue[Any] = asyncio.Queue()
        self.closed = False

    async def send_bytes(self, data: bytes) -> None:
        await self.reads.wait()
        self.got.append(data)

    async def send_text(self, data: str) -> None:
        await self.reads.wait()
        self.got.append(json.loads(data))

    async def receive(self) -> Any:
        return await self.sends.get()

    async def close(self, code: int = 1000, reason: str | None = None) -> None:
        self.closed = True


async def settled() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def nothing(text: str | bytes) -> None:
    pass


def test_only_the_latest_frame_is_sent_and_two_are_in_flight():
    async def scene() -> None:
        page = Page()
        viewer = Viewer(page)
        serving = asyncio.create_task(viewer.serve(nothing))
        for n in range(5):
            viewer.show(b"%d" % n)
        await settled()
        assert page.got == [b"4"] and viewer.ready
        viewer.show(b"5")
        await settled()
        assert page.got == [b"4", b"5"] and not viewer.ready
        viewer.acknowledge(1)
        assert viewer.ready
        for wrong in (0, 1, 99):
            viewer.acknowledge(wrong)
        viewer.show(b"6")
        await settled()
        assert not viewer.ready
        page.sends.put_nowait({"type": "websocket.disconnect"})
        await serving
        assert page.closed and viewer.closed and not viewer.ready

    asyncio.run(scene())


def test_an_empty_slot_is_seen_only_when_its_frame_counts():
    seen: list[int] = []

    class Watched(Viewer):
        def __setattr__(self, name: str, value: Any) -> None:
            super().__setattr__(name, value)
            # As another thread may find it.
            if name == "_frame" and value is None and "closed" in vars(self):
                seen.append(self.next_frame)

    async def scene() -> None:
        page = Page()
        viewer = Watched(page)
        serving = asyncio.create_task(viewer.serve(nothing))
        for n in range(2):
            viewer.show(b"%d" % n)
            await settled()
        page.sends.put_nowait({"type": "websocket.disconnect"})
        await serving

    asyncio.run(scene())
    assert seen == [2, 3]


def test_a_page_that_does_not_read_is_closed():
    async def scene() -> None:
        page = Page()
        page.reads.clear()
        viewer = Viewer(page, timeout=0.05)
        viewer.show(b"frame")
        await asyncio.wait_for(viewer.serve(nothing), 5)
        assert viewer.closed and page.got == []

    asyncio.run(scene())


def test_cancelled_while_it_ends_it_raises_the_cancellation_it_was_given():
    async def scene() -> None:
        serving = asyncio.create_task(Viewer(Page()).serve(nothing))
        await settled()
        serving.cancel("first")
        await asyncio.sleep(0)  # its own tasks are told to end, and have not yet
        serving.cancel("second")
        with pytest.raises(asyncio.CancelledError, match="second"):
            await serving

    asyncio.run(scene())


def test_messages_queue_up_to_a_limit():
    async def scene() -> None:
        page = Page()
        page.reads.clear()
        viewer = Viewer(page, timeout=5)
        for n in range(1000):
            viewer.tell({"n": n})
        assert viewer.closed and len(viewer._texts) == 256

    asyncio.run(scene())


def test_wrong_messages_are_answered_and_too_many_are_slowed(monkeypatch):
    allowed = iter([True, False, True, False])
    monkeypatch.setattr("hotgrid.web._messages.Meter.take", lambda meter: next(allowed))

    async def receive(text: str | bytes) -> None:
        raise MessageError(f"not {text!r}")

    async def scene() -> None:
        page = Page()
        viewer = Viewer(page)
        serving = asyncio.create_task(viewer.serve(receive))
        for n in range(4):
            page.sends.put_nowait({"type": "websocket.receive", "text": str(n)})
        while len(page.got) < 6:
            await asyncio.sleep(0.001)
        told = [each["text"] for each in page.got]
        assert told.count("too many messages; slow down") == 2
        assert [t for t in told if t.startswith("not")] == [f"not '{n}'" for n in range(4)]
        page.sends.put_nowait({"type": "websocket.disconnect"})
        await serving

    asyncio.run(scene())
