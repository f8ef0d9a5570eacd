"""The API in OpenAI's form: models, conversations and completions."""

import asyncio
import contextlib
import secrets
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import replace
from typing import Any

from starlette.requests import ClientDisconnect, Request as HttpRequest
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from hotgrid.chat._generate._engine import Engine
from hotgrid.chat._generate._request import Request, UnavailableError
from hotgrid.chat._generate._sampling import fresh_seed, seed_of
from hotgrid.chat._generate._text import Piece
from hotgrid.chat._prompts import completion_tokens, conversation_tokens
from hotgrid.errors import ArgumentError

from ._answers import Answers, Counts, event
from ._asked import Asked, parse_chat, parse_completion
from ._pieces import Bell, Pieces
from ._problems import ApiError, wrong

DEFAULT = "default"
_BODY = 4 << 20


class Api:
    """The handlers of the API.

    Args:
        engine: What replies; it must have been started.
        key: The key that clients must have; None for none.
    """

    def __init__(self, engine: Engine, key: str | None = None) -> None:
        self._engine, self._key = engine, key
        self._language = engine.language
        self._names = (DEFAULT, self._language.name)
        self._bell: Bell | None = None

    def routes(self) -> list[Route]:
        """Return the routes."""
        return [
            Route("/v1/models", self._guarded(self._models)),
            Route("/v1/models/{name:path}", self._guarded(self._model)),
            Route("/v1/chat/completions", self._guarded(self._chat), methods=["POST"]),
            Route("/v1/completions", self._guarded(self._complete), methods=["POST"]),
            Route("/health", self._guarded(self._health)),
        ]

    def _guarded(self, handler: Callable[[HttpRequest], Any]) -> Callable[[HttpRequest], Any]:
        """Check the key before a handler, and turn errors into answers."""

        async def answer(request: HttpRequest) -> Response:
            try:
                self._expect_key(request)
                return await handler(request)
            except ApiError as problem:
                return problem.response()
            except UnavailableError as problem:
                status = 503 if "stopped" in str(problem) else 429
                return ApiError(status, str(problem), kind="server_error").response()

        return answer

    def _expect_key(self, request: HttpRequest) -> None:
        if self._key is None:
            return
        given = request.headers.get("authorization", "").removeprefix("Bearer ").strip()
        if not secrets.compare_digest(given.encode(), self._key.encode()):
            raise ApiError(
                401,
                "this server needs its key, as `Authorization: Bearer KEY`",
                code="invalid_api_key",
            )

    async def _health(self, request: HttpRequest) -> Response:
        return JSONResponse({"status": "ok", **self._engine.load})

    async def _models(self, request: HttpRequest) -> Response:
        names = dict.fromkeys(self._names)
        return JSONResponse({"object": "list", "data": [self._described(n) for n in names]})

    async def _model(self, request: HttpRequest) -> Response:
        return JSONResponse(self._described(self._known(request.path_params["name"])))

    def _described(self, name: str) -> dict[str, Any]:
        card = self._language.card
        return {
            "id": name,
            "object": "model",
            "created": 0,
            "owned_by": "hotgrid",
            "hotgrid": {
                "name": self._language.name,
                "tuned": bool(card.get("tuned")),
                "about": str(card.get("about", "")),
                "limit": self._engine.limit,
            },
        }

    def _known(self, name: str) -> str:
        if name not in self._names:
            raise ApiError(
                404,
                f"there is no model {name[:80]!r}; this server has {' and '.join(self._names)}",
                param="model",
                code="model_not_found",
            )
        return name

    async def _chat(self, http: HttpRequest) -> Response:
        asked = parse_chat(await _body(http), self._engine.limit)
        self._known(asked.model)
        try:
            tokens = conversation_tokens(self._language, asked.messages)
        except ArgumentError as problem:
            raise wrong("messages", str(problem)) from None
        return await self._reply(http, asked, [tokens], chat=True)

    async def _complete(self, http: HttpRequest) -> Response:
        asked = parse_completion(await _body(http), self._engine.limit)
        self._known(asked.model)
        prompts = [
            completion_tokens(self._language, prompt) if isinstance(prompt, str) else prompt
            for prompt in asked.prompts
        ]
        return await self._reply(http, asked, prompts, chat=False)

    async def _reply(
        self, http: HttpRequest, asked: Asked, prompts: Sequence[list[int]], *, chat: bool
    ) -> Response:
        answers = Answers(
            asked.model,
            self._language.encoding,
            chat,
            Counts(sum(len(prompt) for prompt in prompts)),
            asked.usage,
        )
        requests = self._submit(asked, prompts)
        pieces = Pieces(requests, self._bell_here(), whole=not asked.stream)
        if asked.stream:
            return _Stream(pieces, answers)
        whole = await _whole(pieces, http)
        if whole is None:
            return Response(status_code=499)
        answers.counts.reply = sum(len(piece.tokens) for piece in whole)
        return JSONResponse(answers.whole(whole))

    def _bell_here(self) -> Bell:
        loop = asyncio.get_running_loop()
        if self._bell is None or self._bell.loop is not loop:
            self._bell = Bell(loop)
        return self._bell

    def _submit(self, asked: Asked, prompts: Sequence[list[int]]) -> list[Request]:
        """Submit every choice of every prompt, or none."""
        seed = fresh_seed() if asked.sampling.seed is None else asked.sampling.seed
        requests: list[Request] = []
        try:
            for place, prompt in enumerate(prompts):
                for choice in range(asked.choices):
                    own = seed_of(seed, place * asked.choices + choice)
                    sampling = replace(asked.sampling, seed=own)
                    requests.append(self._engine.submit(prompt, sampling))
        except (ArgumentError, UnavailableError) as problem:
            for request in requests:
                request.cancel()
            if isinstance(problem, UnavailableError):
                raise
            param = "messages" if asked.messages else "prompt"
            long = "tokens, and at most" in str(problem)
            code = "context_length_exceeded" if long else None
            raise wrong(param, str(problem), code) from None
        return requests


class _Stream(StreamingResponse):
    """A stream of events that ends its requests when the client disconnects."""

    def __init__(self, pieces: Pieces, answers: Answers) -> None:
        headers = {"X-Accel-Buffering": "no"}
        self._events = _events(pieces, answers)
        super().__init__(self._events, media_type="text/event-stream", headers=headers)
        self._pieces = pieces

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        # Starlette's own way has more turns of the event loop for every part.
        kind = {"type": "http.response.start", "status": self.status_code}
        gone = _when_gone(receive, self._pieces.abandon)
        try:
            await send({**kind, "headers": self.raw_headers})
            async with contextlib.aclosing(self._events) as parts:
                async for part in parts:
                    await send({"type": "http.response.body", "body": part, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            gone.cancel()
            # The client may go before the first event is asked for.
            self._pieces.cancel()


async def _events(pieces: Pieces, answers: Answers) -> AsyncGenerator[bytes, None]:
    """Yield the events of a stream; those of the same moment together."""
    ahead = b""
    if answers.chat:
        ahead = b"".join(event(answers.opening(index)) for index in range(len(pieces)))
    running = len(pieces)
    try:
        async with contextlib.aclosing(pieces.__aiter__()) as arriving:
            async for new in arriving:
                answers.counts.reply += sum(len(piece.tokens) for _, piece in new)
                parts = [event(answers.part(index, piece)) for index, piece in new]
                running -= sum(piece.finish is not None for _, piece in new)
                if not running:
                    parts += [event(answers.closing())] if answers.usage else []
                    parts.append(event("[DONE]"))
                yield ahead + b"".join(parts)
                ahead = b""
    except Exception as problem:  # noqa: BLE001  the answer has begun; it can only be told so
        said = ApiError(500, _first_line(problem), kind="server_error").body
        yield ahead + event(said)


async def _whole(pieces: Pieces, http: HttpRequest) -> list[Piece] | None:
    """Return all of each request, or None once the client has gone."""
    gone = _when_gone(http.receive, pieces.abandon)
    try:
        return await pieces.whole()
    except Exception as problem:
        if isinstance(problem, ApiError | UnavailableError):
            raise
        raise ApiError(500, _first_line(problem), kind="server_error") from problem
    finally:
        gone.cancel()


def _when_gone(receive: Any, call: Callable[[], None]) -> asyncio.Future[None]:
    """Call a function when the client has gone, or when what this returns is cancelled."""

    async def wait() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    gone = asyncio.ensure_future(wait())
    gone.add_done_callback(lambda _: call())
    return gone


def _first_line(problem: Exception) -> str:
    return next(iter(str(problem).splitlines()), type(problem).__name__)


async def _body(http: HttpRequest) -> bytes:
    parts, size = [], 0
    try:
        async for part in http.stream():
            size += len(part)
            if size > _BODY:
                raise ApiError(413, f"the body is larger than {_BODY} bytes")
            parts.append(part)
    except ClientDisconnect:
        raise ApiError(400, "the body is not complete") from None
    return b"".join(parts)
