"""`ChatApp`: the API and the page over one engine, and a server for them."""

from importlib.resources import files
from pathlib import Path

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from hotgrid.chat._generate._engine import Engine
from hotgrid.web import PageServer, page_files

from ._api import Api
from ._problems import ApiError


class ChatApp:
    """An application that talks.

    Args:
        engine: What replies; start it before the server.
        key: The key that clients of the API must have; None for none. The page asks for it.

    Example:
        >>> with Engine(language) as engine:  # doctest: +SKIP
        ...     with ChatApp(engine).serve(port=0) as server:
        ...         print(server.address)
    """

    def __init__(self, engine: Engine, key: str | None = None) -> None:
        own, shared = (
            Path(str(files(package) / "page"))
            for package in ("hotgrid.chat.serve", "hotgrid.web")
        )
        self._pages = {"page": page_files(own), "web": page_files(shared)}
        self.app = Starlette(
            routes=[
                Route("/", self._home),
                *Api(engine, key).routes(),
                Route("/v1/{path:path}", _unknown, methods=["GET", "POST", "DELETE"]),
                Route("/{kind:str}/{path:path}", self._file),
            ],
            exception_handlers={404: _unknown, 405: _unknown},
        )

    def serve(self, port: int = 8766, host: str = "127.0.0.1") -> PageServer:
        """A server for it, which is not started yet.

        Raises:
            ArgumentError: The address cannot be used.
            MissingPartError: uvicorn is not installed.
        """
        return PageServer(self.app, port, host, open=True)

    async def _home(self, request: Request) -> Response:
        return self._pages["page"]["chat.html"]

    async def _file(self, request: Request) -> Response:
        kind, path = request.path_params["kind"], request.path_params["path"]
        found = self._pages.get(kind, {}).get(path)
        return found or PlainTextResponse("no such file\n", 404)


async def _unknown(request: Request, problem: object = None) -> Response:
    status = getattr(problem, "status_code", 404)
    text = f"{request.method} {request.url.path} is not part of this API"
    return ApiError(status, text).response()
