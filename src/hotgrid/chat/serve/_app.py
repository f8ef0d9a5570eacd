"""`ChatApp`: the API and the page over one engine, and a server for them."""

import sys

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hotgrid.chat._generate._engine import Engine
from hotgrid.web import PageFiles, PageServer

from ._api import Api
from ._problems import ApiError

# Seconds; less than a step of a large batch takes.
_SWITCH = 2e-4


class ChatApp:
    """The API and the chat page of an engine, as an application.

    Args:
        engine: What replies; start it before the server.
        key: The key that clients of the API must have; None for none. The page asks for it.

    Example:
        >>> with Engine(language) as engine:  # doctest: +SKIP
        ...     with ChatApp(engine).serve(port=0) as server:
        ...         print(server.address)
    """

    def __init__(self, engine: Engine, key: str | None = None) -> None:
        pages = PageFiles("hotgrid.chat.serve")
        routes = Api(engine, key).routes()
        self._methods = {route.path: route.methods or set() for route in routes}
        self.app = Starlette(
            routes=[
                pages.home("chat.html"),
                *routes,
                Route("/v1/{path:path}", self._unknown, methods=["GET", "POST", "DELETE"]),
                pages.route(),
            ],
            exception_handlers={404: self._unknown, 405: self._unknown},
        )

    def serve(self, port: int = 8766, host: str = "127.0.0.1") -> PageServer:
        """A server for it, which is not started yet.

        It shortens the interpreter's switch interval, as the engine's thread would often have
        to wait that long for the server's, and the device for both.

        Raises:
            ArgumentError: The address cannot be used.
            MissingPartError: uvicorn is not installed.
        """
        server = PageServer(self.app, port, host, open=True)
        sys.setswitchinterval(min(sys.getswitchinterval(), _SWITCH))
        return server

    async def _unknown(self, request: Request, problem: object = None) -> Response:
        allowed = self._methods.get(request.url.path)
        status = 405 if allowed else getattr(problem, "status_code", 404)
        way = f"; use {' or '.join(sorted(allowed))}" if allowed else ""
        text = f"{request.method} {request.url.path} is not part of this API{way}"
        answer = ApiError(status, text).response()
        if allowed:
            answer.headers["Allow"] = ", ".join(sorted(allowed))
        return answer
