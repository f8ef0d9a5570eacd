"""`WatchApp`: the page of a policy that acts, and a server for it."""

from starlette.applications import Starlette
from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket

from hotgrid.web import PageFiles, PageServer, Viewer

from ._show import Show


class WatchApp:
    """An application that shows a policy.

    Args:
        show: The show to serve; start it before the server.

    Example:
        >>> show = Show("out/cartpole")  # doctest: +SKIP
        >>> show.start()  # doctest: +SKIP
        >>> with WatchApp(show).serve(port=0) as server:  # doctest: +SKIP
        ...     server.wait()
    """

    def __init__(self, show: Show) -> None:
        self._show = show
        pages = PageFiles("hotgrid.train.rl.watch")
        live = WebSocketRoute("/live", self._live)
        self.app = Starlette(routes=[pages.home("watch.html"), live, pages.route()])

    def serve(self, port: int = 8767, host: str = "127.0.0.1") -> PageServer:
        """A server for it, which is not started yet.

        Raises:
            ArgumentError: The address cannot be used.
            MissingPartError: uvicorn is not installed.
        """
        return PageServer(self.app, port, host)

    async def _live(self, socket: WebSocket) -> None:
        await socket.accept()
        viewer = Viewer(socket)
        self._show.join(viewer)
        try:
            await viewer.serve(lambda text: self._show.receive(viewer, text))
        finally:
            self._show.leave(viewer)
