"""The application behind the live page: routes, sessions, saved files."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import HTTPConnection, Request
from starlette.responses import (
    FileResponse,
    JSONResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
)
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

from hotgrid.config import Case, case_of
from hotgrid.errors import ArgumentError, HotgridError
from hotgrid.grid.run import find_model, models, prepared
from hotgrid.web import PageServer, Viewer, page_files

from ._gallery import Thumbnails, listed
from ._live import LiveRun
from ._session import Session

# Seconds after which a session of the gallery without viewers ends.
_LINGER = 30.0
_MOST_SESSIONS = 4


class ViewApp:
    """The live page of one model, or of all of them.

    Arguments:
        case: What is shown; None for the gallery.
        folder: Where pictures, films and checkpoints go.
        playing: Whether simulations run from the start.
    """

    def __init__(
        self, case: Case | None, folder: Path = Path("hotgrid-view"), *, playing: bool = True
    ) -> None:
        self._case = case
        self._folder = folder
        self._playing = playing
        self._sessions: dict[str, Session] = {}
        self._thumbnails = Thumbnails()
        self._lock = threading.Lock()
        own, shared = (
            Path(str(files(p) / "page")) for p in ("hotgrid.grid.view", "hotgrid.web")
        )
        self._pages = {"page": page_files(own), "web": page_files(shared)}
        self.app = Starlette(
            routes=[
                Route("/", self._home),
                Route("/m/{name}", self._model),
                Route("/models.json", self._models),
                Route("/thumb/{name}.png", self._thumb),
                Route("/saved/{name}", self._saved),
                Route("/{kind:str}/{path:path}", self._file),
                WebSocketRoute("/m/{name}/live", self._live),
            ],
            lifespan=self._lifespan,
        )

    def serve(
        self, port: int = 8765, host: str = "127.0.0.1", token: str | None = None
    ) -> PageServer:
        """A server for it, which is not started yet.

        Raises:
            ArgumentError: The address cannot be used.
        """
        return PageServer(self.app, port, host, token)

    def begin(self) -> None:
        """Start the simulation of the one model that is shown.

        Raises:
            HotgridError: It cannot be run with these options.
        """
        if self._case is not None:
            self._session(self._name(), {})

    def close(self) -> None:
        """End all simulations."""
        self._thumbnails.stop()
        for session in list(self._sessions.values()):
            session.stop()

    def _name(self) -> str:
        text = "" if self._case is None else self._case.model
        return text if text in models() else Path(text.partition(":")[0]).stem

    def _session(self, name: str, options: Mapping[str, Any]) -> Session:
        """The session of a model, started where it does not run yet."""
        with self._lock:
            key = name if not options else f"{name}?{sorted(options.items())}"
            if key in self._sessions:
                return self._sessions[key]
            if self._case is not None and name == self._name():
                case = replace(self._case, **options) if options else self._case
            else:
                find_model(name)
                case = case_of(name, {**options})
            if len(self._sessions) >= _MOST_SESSIONS:
                self._end_one()
            live = LiveRun(name, prepared(case), case, self._folder)
            session = self._sessions[key] = Session(live, playing=self._playing).start()
            return session

    def _end_unwatched(self) -> None:
        """End the simulations of the gallery that no page shows."""
        with self._lock:
            for key, session in list(self._sessions.items()):
                if not session.viewers:
                    del self._sessions[key]
                    session.stop()

    def _end_one(self) -> None:
        for key, session in self._sessions.items():
            if not session.viewers:
                del self._sessions[key]
                session.stop()
                return
        raise ArgumentError(
            f"{_MOST_SESSIONS} simulations run already; close one of their pages"
        )

    @contextlib.asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncIterator[None]:
        yield
        await asyncio.to_thread(self.close)

    async def _home(self, request: Request) -> Response:
        if self._case is not None:
            return RedirectResponse(f"/m/{self._name()}")
        self._thumbnails.start()
        return self._pages["page"]["gallery.html"]

    async def _model(self, request: Request) -> Response:
        try:
            self._known(request.path_params["name"])
        except HotgridError as problem:
            return PlainTextResponse(f"{problem}\n", 404)
        return self._pages["page"]["view.html"]

    def _known(self, name: str) -> None:
        if name != self._name() and name not in models():
            raise ArgumentError(f"there is no model {name!r}")

    async def _models(self, request: Request) -> Response:
        return JSONResponse(await asyncio.to_thread(listed))

    async def _thumb(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in models():
            return PlainTextResponse("no such model\n", 404)
        self._thumbnails.start()
        found = self._thumbnails.get(name)
        return (
            Response(status_code=202)
            if found is None
            else Response(found, media_type="image/png")
        )

    async def _saved(self, request: Request) -> Response:
        name = request.path_params["name"]
        for session in self._sessions.values():
            if name in session.live.files:
                return FileResponse(session.live.files[name], filename=name)
        return PlainTextResponse("no such file\n", 404)

    async def _file(self, request: Request) -> Response:
        found = self._pages.get(request.path_params["kind"], {}).get(
            request.path_params["path"]
        )
        return found or PlainTextResponse("no such file\n", 404)

    async def _live(self, socket: WebSocket) -> None:
        await socket.accept()
        viewer = Viewer(socket)
        try:
            self._known(socket.path_params["name"])
            options = _options(socket)
            session = await asyncio.to_thread(
                self._session, socket.path_params["name"], options
            )
        except HotgridError as problem:
            await socket.send_json({"type": "error", "text": str(problem)})
            await socket.close(4400)
            return
        await asyncio.to_thread(session.join, viewer)
        try:
            await viewer.serve(lambda text: session.receive(viewer, text))
        finally:
            session.leave(viewer)
            if self._case is None:
                await asyncio.sleep(_LINGER)
                await asyncio.to_thread(self._end_unwatched)


def _options(connection: HTTPConnection) -> dict[str, Any]:
    """The options in an address: size, seed, and `set=name:value`."""
    query = connection.query_params
    options: dict[str, Any] = {}
    if "size" in query:
        options["size"] = query["size"]
    if "seed" in query:
        if not query["seed"].isdigit():
            raise ArgumentError(f"`seed` must be a whole number, got {query['seed']!r}")
        options["seed"] = int(query["seed"])
    pairs = [each.partition(":") for each in query.getlist("set")]
    if pairs:
        options["set"] = {name: value for name, _, value in pairs}
    return options
