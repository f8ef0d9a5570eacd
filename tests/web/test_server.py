"""The socket that a server listens on."""

import asyncio
import socket

from hotgrid.web._server import _bound


def test_answers_in_several_parts_do_not_wait_for_the_client() -> None:
    async def accepted() -> int:
        found: asyncio.Queue[int] = asyncio.Queue()

        def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            mine = writer.get_extra_info("socket")
            found.put_nowait(mine.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        listening = _bound("127.0.0.1", 0)
        async with await asyncio.start_server(connected, sock=listening):
            _, writer = await asyncio.open_connection(*listening.getsockname())
            try:
                return await found.get()
            finally:
                writer.close()

    assert asyncio.run(accepted())
