"""Access control: token, Host and Origin, over real sockets."""

import http.client
from collections.abc import Iterator
from contextlib import closing

import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route, WebSocketRoute
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from hotgrid.errors import ArgumentError
from hotgrid.web import PageServer


async def hello(request):
    return PlainTextResponse("hello")


async def echo(socket):
    await socket.accept()
    await socket.send_text(await socket.receive_text())
    await socket.close()


APP = Starlette(
    routes=[Route("/", hello, methods=["GET", "POST"]), WebSocketRoute("/live", echo)]
)


@pytest.fixture(scope="module")
def server() -> Iterator[PageServer]:
    with PageServer(APP, port=0) as running:
        yield running


def status(server: PageServer, path: str, method: str = "GET", **headers: str) -> int:
    with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)) as client:
        client.request(method, path, headers=headers)
        return client.getresponse().status


def test_the_address_opens_and_sets_a_cookie_that_scripts_cannot_read(server: PageServer):
    with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)) as client:
        client.request("GET", f"/?token={server.token}")
        answer = client.getresponse()
        assert (answer.status, answer.read()) == (200, b"hello")
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=Strict" in cookie
    assert "default-src 'self'" in answer.headers["content-security-policy"]
    assert status(server, "/", Cookie=cookie.partition(";")[0]) == 200


@pytest.mark.parametrize("token", ["", "?token=", "?token=wrong", "?token=%00", "?token=%FF"])
def test_without_the_token_nothing_is_served(server: PageServer, token: str):
    assert status(server, f"/{token}") == 403


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "127.0.0.1:1"])
def test_another_host_is_refused(server: PageServer, host: str):
    assert status(server, f"/?token={server.token}", Host=host) == 403


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]"])
def test_names_of_this_machine_are_taken(server: PageServer, host: str):
    named = f"{host}:{server.port}"
    assert status(server, f"/?token={server.token}", Host=named) == 200


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1"])
def test_another_origin_is_refused(server: PageServer, origin: str):
    assert status(server, f"/?token={server.token}", Origin=origin) == 403
    with pytest.raises(InvalidStatus):
        connect(f"ws://127.0.0.1:{server.port}/live?token={server.token}", origin=origin)


def test_a_socket_needs_the_token_or_the_cookie_with_an_origin(server: PageServer):
    address = f"ws://127.0.0.1:{server.port}/live"
    own, cookie = (
        f"http://127.0.0.1:{server.port}",
        {"Cookie": f"hotgrid-{server.port}={server.token}"},
    )
    for refused in ({}, {"additional_headers": cookie}):
        with pytest.raises(InvalidStatus):
            connect(address, **refused)
    for taken in (
        connect(f"{address}?token={server.token}"),
        connect(address, origin=own, additional_headers=cookie),
    ):
        with taken as socket:
            socket.send("hi")
            assert socket.recv(10) == "hi"


def test_the_next_port_is_taken_where_one_is_in_use(server: PageServer):
    with PageServer(APP, port=server.port) as other:
        assert server.port < other.port <= server.port + 20
    assert other.token != server.token and f":{other.port}/?token=" in other.address


def test_an_open_server_needs_no_token_but_checks_host_and_origin():
    with PageServer(APP, port=0, open=True) as server:
        assert server.address == f"http://127.0.0.1:{server.port}/"
        assert status(server, "/") == status(server, "/", "POST") == 200
        assert status(server, "/", Host="evil.example") == 403
        for method in ("GET", "POST"):
            assert status(server, "/", method, Origin="http://evil.example") == 403
        assert status(server, "/", "POST", Origin=server.address.rstrip("/")) == 200


@pytest.mark.parametrize(
    ("port", "host"), [(-1, "127.0.0.1"), (70000, "127.0.0.1"), (0, "nowhere")]
)
def test_an_invalid_address_is_reported(port: int, host: str):
    with pytest.raises(ArgumentError, match="must be"):
        PageServer(APP, port=port, host=host)
