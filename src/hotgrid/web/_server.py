"""`PageServer`: uvicorn on loopback, in this thread or in its own."""

import contextlib
import errno
import ipaddress
import socket
import threading
from collections.abc import Iterable
from typing import Any

from hotgrid.errors import ArgumentError, MissingPartError

from ._guard import App, Guard

_TRIED = 20
_START = 30.0
_EVERYWHERE = ("0.0.0.0", "::")  # noqa: S104  only where a user asks for it


class PageServer:
    """Serves an application to this machine, or also to others on request.

    Arguments:
        app: An ASGI application.
        port: The port; if another program has it, one of the next ones. 0 is any free port.
        host: The address to listen on; by default only this machine can connect.
        token: The secret in the address; by default a random one.
        open: Whether the address has no token: for an application that checks a key itself,
            or needs none.

    Example:
        >>> server = PageServer(app, port=0)  # doctest: +SKIP
        >>> server.start()  # doctest: +SKIP

    Raises:
        ArgumentError: The address or port cannot be used.
        MissingPartError: uvicorn is not installed.
    """

    def __init__(
        self,
        app: App,
        port: int = 8765,
        host: str = "127.0.0.1",
        token: str | None = None,
        *,
        open: bool = False,
    ) -> None:
        try:
            import uvicorn
        except ImportError:
            raise MissingPartError(
                "live pages need Starlette and uvicorn: run `pip install 'hotgrid[view]'`"
            ) from None
        self._socket = _bound(host, port)
        self.port: int = self._socket.getsockname()[1]
        self._host = host
        self._open = open
        guard = Guard(app, self.port, _names(host), token, open=open)
        self.token = guard.token
        settings: Any = uvicorn.Config(
            guard,
            log_level="warning",
            ws="websockets-sansio",
            # Compressing frames costs fifty times more than sending them on loopback.
            ws_per_message_deflate=False,
            ws_max_size=1 << 17,
            ws_ping_interval=20.0,
            timeout_graceful_shutdown=2,
            lifespan="on",
            server_header=False,
        )
        self._server = uvicorn.Server(settings)
        self._thread: threading.Thread | None = None
        self._ended = threading.Event()

    @property
    def address(self) -> str:
        """The address to open, with its token if it has one."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        shown = "127.0.0.1" if self._host in _EVERYWHERE else host
        query = "" if self._open else f"?token={self.token}"
        return f"http://{shown}:{self.port}/{query}"

    def wait(self) -> None:
        """Wait for a started server to end, or for an interrupt."""
        # Not by `join`: an interrupted one marks its thread as ended (Python 3.11).
        while self._thread is not None and not self._ended.wait(0.2):
            pass

    def start(self) -> "PageServer":
        """Serve in a thread; returns when pages can be opened.

        Raises:
            ArgumentError: The server does not start.
        """
        self._thread = threading.Thread(target=self._run, name="hotgrid-web", daemon=True)
        self._thread.start()
        waited = threading.Event()
        for _ in range(int(_START / 0.01)):
            if self._server.started or not self._thread.is_alive():
                break
            waited.wait(0.01)
        if not self._server.started:
            raise ArgumentError(f"the server at port {self.port} does not start")
        return self

    def stop(self) -> None:
        """End the server and wait for it."""
        self._server.should_exit = True
        if self._thread is not None:
            self._ended.wait(20)
        self._socket.close()

    def _run(self) -> None:
        try:
            self._server.run(sockets=[self._socket])
        finally:
            self._ended.set()

    def __enter__(self) -> "PageServer":
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()


def _names(host: str) -> Iterable[str]:
    """Names besides loopback under which a browser may ask for this server."""
    if host in _EVERYWHERE:
        name = socket.gethostname()
        with contextlib.suppress(OSError):
            found = {entry[4][0] for entry in socket.getaddrinfo(name, None)}
            return {name, *map(str, found)}
        return {name}
    return {host}


def _bound(host: str, port: int) -> socket.socket:
    """A socket that listens at the first free port from `port` on."""
    if not isinstance(port, int) or not 0 <= port <= 65535:
        raise ArgumentError(f"`port` must be a whole number from 0 to 65535, got {port!r}")
    try:
        family = socket.AF_INET6 if ipaddress.ip_address(host).version == 6 else socket.AF_INET
    except ValueError:
        raise ArgumentError(
            f"`host` must be an address such as 127.0.0.1, got {host!r}"
        ) from None
    problem: OSError | None = None
    for tried in range(port, min(port + (_TRIED if port else 1), 65536)):
        # asyncio switches Nagle's algorithm off only where the protocol is named. With it, the
        # second part of an answer waits for the client to acknowledge the first: 40 ms.
        listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((host, tried))
            listening.listen(128)
            return listening
        except OSError as refused:
            listening.close()
            problem = refused
            if refused.errno not in (errno.EADDRINUSE, errno.EACCES):
                break
    raise ArgumentError(f"cannot listen at {host}:{port}: {problem and problem.strerror}")
