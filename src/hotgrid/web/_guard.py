"""Access control of the server: a token, and checks of Host and Origin."""

import secrets
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs, urlsplit

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-cache"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"x-frame-options", b"DENY"),
    (
        b"content-security-policy",
        b"default-src 'self'; img-src 'self' blob: data:; style-src 'self' 'unsafe-inline'; "
        b"connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    ),
)


class Guard:
    """An ASGI application in front of another, which lets only its own page in.

    The token comes once, as `?token=...`; it is then kept in a cookie that scripts cannot read
    and other sites cannot send. A wrong Host is refused, which stops DNS rebinding; a wrong
    Origin is refused, which stops other sites from opening sockets.

    Arguments:
        app: The application to guard.
        port: The port of the server.
        hosts: Names besides those of loopback under which the server may be reached.
        token: The secret; by default a random one.
        open: Whether no token is needed; Host and Origin are checked all the same.
    """

    def __init__(
        self,
        app: App,
        port: int,
        hosts: Iterable[str] = (),
        token: str | None = None,
        *,
        open: bool = False,
    ) -> None:
        self._app, self._open = app, open
        self.token = token or secrets.token_urlsafe(18)
        self._cookie = f"hotgrid-{port}"
        names = [*_LOOPBACK, *hosts]
        self._hosts = {f"{_bracketed(name)}:{port}" for name in names}
        if port == 80:
            self._hosts |= {_bracketed(name) for name in names}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        headers = {name.lower(): value.decode("latin-1") for name, value in scope["headers"]}
        problem = self._problem(scope, headers)
        if problem:
            await _refuse(scope, receive, send, problem)
            return
        given = None if self._open else _query_token(scope)

        async def guarded(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                extra = list(_HEADERS)
                if given is not None:
                    cookie = f"{self._cookie}={given}; HttpOnly; SameSite=Strict; Path=/"
                    extra.append((b"set-cookie", cookie.encode()))
                message["headers"] = [*message.get("headers", ()), *extra]
            await send(message)

        await self._app(scope, receive, guarded)

    def _problem(self, scope: Scope, headers: dict[bytes, str]) -> str:
        """Why a request is refused; empty where it is not."""
        host = headers.get(b"host", "").lower()
        if host not in self._hosts:
            return f"the Host {host!r} is not this server"
        origin = headers.get(b"origin")
        asks = scope["type"] == "websocket" or scope.get("method") not in ("GET", "HEAD")
        if origin is not None and _host_of(origin) != host:
            return f"the Origin {origin!r} is not this server's page"
        if self._open:
            return ""
        if asks and origin is None and _cookie(headers, self._cookie) is not None:
            # A browser always says where a socket comes from; programs bring the token itself.
            return "a socket needs an Origin or the token in its address"
        given = _query_token(scope) or _cookie(headers, self._cookie) or ""
        if not secrets.compare_digest(given.encode(), self.token.encode()):
            return "open the address that `hotgrid` printed, with its token"
        return ""


def _host_of(origin: str) -> str | None:
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return None


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host.lower()


def _query_token(scope: Scope) -> str | None:
    query = scope.get("query_string", b"").decode("latin-1")
    return next(iter(parse_qs(query).get("token", ())), None)


def _cookie(headers: dict[bytes, str], name: str) -> str | None:
    try:
        found = SimpleCookie(headers.get(b"cookie", "")).get(name)
    except CookieError:
        return None
    return None if found is None else found.value


async def _refuse(scope: Scope, receive: Receive, send: Send, problem: str) -> None:
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.close", "code": 4403, "reason": problem[:100]})
        return
    body = f"403: {problem}\n".encode()
    headers = [(b"content-type", b"text/plain; charset=utf-8"), *_HEADERS]
    await send({"type": "http.response.start", "status": 403, "headers": headers})
    await send({"type": "http.response.body", "body": body})
