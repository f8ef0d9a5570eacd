"""The application behind the live page: routes, sessions, saved files."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import (
    FileResponse,
    JSONResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
)
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from hotgrid.config import Case, case_of
from hotgrid.errors import ArgumentError, HotgridError
from hotgrid.grid.run import find_model, models, prepared
from hotgrid.web import PageFiles, PageServer, Viewer

from ._gallery import Thumbnails, listed
from ._live import LiveRun
from ._session import Session

# Seconds after which a session of the gallery without viewers ends.
_LINGER = 30.0
_MOST_SESSIONS = 4


class ViewApp:
    """The live page of one model, or of all of them.

    Arguments:
        case: The model to show, with its options; None for the gallery.
        folder: Where pictures, films and checkpoints go.
        playing: Whether simulations run from the start.
        device: Where models of the gallery run; by default the GPU if there is one.
    """

    def __init__(
        self,
        case: Case | None,
        folder: Path = Path("hotgrid-view"),
        *,
        playing: bool = True,
        device: str | None = None,
    ) -> None:
        self._case = case
        self._device = device
        self._folder = folder
        self._playing = playing
        self._sessions: dict[str, Session] = {}
        self._thumbnails = Thumbnails()
        self._lock = threading.Lock()
        self._pages = PageFiles("hotgrid.grid.view")
        self.app = Starlette(
            routes=[
                Route("/", self._home),
                Route("/m/{name}", self._model),
                Route("/models", self._gallery),
                Route("/models.json", self._models),
                Route("/thumb/{name}.png", self._thumb),
                Route("/saved/{name}", self._saved),
                self._pages.route(),
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
            with self._lock:
                self._session(self._name(), {})

    def follow(self) -> None:
        """Follow the first rank of a mesh until it ends; for all other ranks.

        Raises:
            HotgridError: It cannot be run with these options.
        """
        if self._case is not None:
            LiveRun(self._name(), prepared(self._case), self._case, self._folder).follow()

    def close(self) -> None:
        """End all simulations."""
        self._thumbnails.stop()
        for session in list(self._sessions.values()):
            session.stop()

    def _name(self) -> str:
        text = "" if self._case is None else self._case.model
        return text if text in models() else Path(text.partition(":")[0]).stem

    def _joined(self, name: str, options: Mapping[str, Any], viewer: Viewer) -> Session:
        """The session of a model, with one more viewer."""
        # Together: a session without a viewer may be ended at any time.
        with self._lock:
            session = self._session(name, options)
            session.join(viewer)
            return session

    def _session(self, name: str, options: Mapping[str, Any]) -> Session:
        """The session of a model, started where it does not run yet."""
        for session in self._sessions.values():
            live = session.live
            if options and live.name == name and _options_of(live.link()) == options:
                return session
        key = name if not options else f"{name}?{sorted(options.items())}"
        if key in self._sessions:
            return self._sessions[key]
        case = self._case_for(name, options)
        if len(self._sessions) >= _MOST_SESSIONS:
            self._end_one()
        live = LiveRun(name, prepared(case), case, self._folder)
        session = self._sessions[key] = Session(live, playing=self._playing).start()
        return session

    def _case_for(self, name: str, options: Mapping[str, Any]) -> Case:
        """The case of a new session: the given one, overridden by the options of a link."""
        own = self._case
        self._expect_no_files(name, options.get("set", {}))
        if own is None or name != self._name():
            if own is not None and own.mesh is not None:
                raise ArgumentError(
                    f"this server runs `{self._name()}` on a mesh, and no other"
                )
            return case_of(name, {"device": own.device if own else self._device, **options})
        if options and own.mesh is not None:
            raise ArgumentError(
                "a mesh runs one configuration, and the link asks for another; start "
                "`hotgrid view` with the options of the link"
            )
        over = case_of(own.model, options)
        options = {key: getattr(over, key) for key in options}
        return replace(own, **{**options, "set": {**own.set, **over.set}})

    def _expect_no_files(self, name: str, values: Mapping[str, str]) -> None:
        """Refuse a link to files of the server, except those that it was started with."""
        own = self._case if name == self._name() else None
        model = find_model(name if own is None else own.model)
        for option, value in values.items():
            given = None if own is None else own.set.get(option)
            if value != given and model.names_file(option, value):
                raise ArgumentError(
                    f"a link cannot name a file, and `{option}` is {value!r}; start "
                    f"`hotgrid view {name} --set {option}={value}`"
                )

    def _end_unwatched(self) -> None:
        """End simulations that no page shows, but not the one that the server is for."""
        own = None if self._case is None else self._name()
        with self._lock:
            for key, session in list(self._sessions.items()):
                if not session.viewers and key != own:
                    del self._sessions[key]
                    session.stop()

    def _end_one(self) -> None:
        own = None if self._case is None else self._name()
        for key, session in self._sessions.items():
            if not session.viewers and key != own:
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
        return await self._gallery(request)

    async def _gallery(self, request: Request) -> Response:
        self._thumbnails.start()
        return self._pages["gallery.html"]

    async def _model(self, request: Request) -> Response:
        try:
            self._known(request.path_params["name"])
        except HotgridError as problem:
            return PlainTextResponse(f"{problem}\n", 404)
        return self._pages["view.html"]

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
        if found is None:
            return Response(status_code=202)
        if not found:
            return PlainTextResponse("the model cannot be run on a small grid\n", 404)
        return Response(found, media_type="image/png")

    async def _saved(self, request: Request) -> Response:
        name = request.path_params["name"]
        for session in self._sessions.values():
            if name in session.live.files:
                return FileResponse(session.live.files[name], filename=name)
        return PlainTextResponse("no such file\n", 404)

    async def _live(self, socket: WebSocket) -> None:
        await socket.accept()
        viewer = Viewer(socket)
        try:
            self._known(socket.path_params["name"])
            options = _options_of(str(socket.url))
            name = socket.path_params["name"]
            session = await asyncio.to_thread(self._joined, name, options, viewer)
        except HotgridError as problem:
            # The page may be gone already.
            with contextlib.suppress(WebSocketDisconnect, RuntimeError):
                await socket.send_json({"type": "error", "text": str(problem)})
                await socket.close(4400)
            return
        try:
            await viewer.serve(lambda text: session.receive(viewer, text))
        finally:
            session.leave(viewer)
            loop = asyncio.get_running_loop()
            loop.call_later(_LINGER, loop.run_in_executor, None, self._end_unwatched)


def _options_of(address: str) -> dict[str, Any]:
    """The options in an address: size, seed, and `set=name:value`."""
    query = parse_qs(urlsplit(address).query)
    options: dict[str, Any] = {}
    if "size" in query:
        options["size"] = query["size"][-1]
    if "seed" in query:
        if not query["seed"][-1].isdecimal() or len(query["seed"][-1]) > 18:
            raise ArgumentError(f"`seed` must be a whole number, got {query['seed'][-1]!r}")
        options["seed"] = int(query["seed"][-1])
    pairs = [each.partition(":") for each in query.get("set", ())]
    if pairs:
        options["set"] = {name: value for name, _, value in pairs}
    return options
