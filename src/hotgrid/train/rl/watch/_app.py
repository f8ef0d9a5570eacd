"""`WatchApp`: the page of a policy that acts, and a server for it."""

from importlib.resources import files
from pathlib import Path

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

from hotgrid.web import PageServer, Viewer, page_files

from ._show import Show


class WatchApp:
    """An application that shows a policy.

    Args:
        show: What is shown; start it before the server.

    Example:
        >>> show = Show("out/cartpole")  # doctest: +SKIP
        >>> show.start()  # doctest: +SKIP
        >>> with WatchApp(show).serve(port=0) as server:  # doctest: +SKIP
        ...     server.wait()
    """

    def __init__(self, show: Show) -> None:
        own, shared = (
            Path(str(files(package) / "page"))
            for package in ("hotgrid.train.rl.watch", "hotgrid.web")
        )
        self._show = show
        self._pages = {"page": page_files(own), "web": page_files(shared)}
        self.app = Starlette(
            routes=[
                Route("/", self._home),
                WebSocketRoute("/live", self._live),
                Route("/{kind:str}/{path:path}", self._file),
            ]
        )

    def serve(self, port: int = 8767, host: str = "127.0.0.1") -> PageServer:
        """A server for it, which is not started yet.

        Raises:
            ArgumentError: The address cannot be used.
            MissingPartError: uvicorn is not installed.
        """
        return PageServer(self.app, port, host)

    async def _home(self, request: Request) -> Response:
        return self._pages["page"]["watch.html"]

    async def _file(self, request: Request) -> Response:
        kind, path = request.path_params["kind"], request.path_params["path"]
        found = self._pages.get(kind, {}).get(path)
        return found or PlainTextResponse("no such file\n", 404)

    async def _live(self, socket: WebSocket) -> None:
        await socket.accept()
        viewer = Viewer(socket)
        self._show.join(viewer)
        try:
            await viewer.serve(lambda text: self._show.receive(viewer, text))
        finally:
            self._show.leave(viewer)
