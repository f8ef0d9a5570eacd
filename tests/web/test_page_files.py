"""Files of pages: those of the package and the shared ones, and nothing else."""

import asyncio
from collections.abc import MutableMapping
from typing import Any

import pytest
from starlette.applications import Starlette

from hotgrid.web import PageFiles

PAGES = PageFiles("hotgrid.grid.view")
APP = Starlette(routes=[PAGES.home("gallery.html"), PAGES.route()])


def get(path: str) -> tuple[int, str, bytes]:
    """Ask the application itself: a client or a server could clean the path."""
    sent: list[MutableMapping[str, Any]] = []

    async def receive() -> MutableMapping[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "GET", "path": path, "headers": [], "query_string": b""}
    asyncio.run(APP({**scope, "root_path": "", "scheme": "http"}, receive, send))
    kind = dict(sent[0]["headers"]).get(b"content-type", b"").decode()
    return sent[0]["status"], kind, sent[1]["body"]


def test_files_of_the_package_and_shared_ones_are_sent_with_their_kind():
    assert get("/") == get("/page/gallery.html")
    assert get("/")[:2] == (200, "text/html; charset=utf-8")
    assert get("/web/tokens.css")[:2] == (200, "text/css; charset=utf-8")
    assert get("/web/vendor/uplot-1.6.32/uPlot.iife.min.js")[0] == 200
    assert get("/page/view.html")[2] == PAGES["view.html"].body


@pytest.mark.parametrize(
    "path",
    [
        "/page/../_app.py",
        "/page/..%2f_app.py",
        "/page//etc/passwd",
        "/web/../page/gallery.html",
        "/web/vendor/uplot-1.6.32/LICENSE",
        "/page/",
        "/other/gallery.html",
        "/page/gallery.html/",
    ],
)
def test_nothing_else_is(path: str):
    assert get(path) == (404, "text/plain; charset=utf-8", b"no such file\n")


def test_a_missing_page_is_an_error_of_the_program():
    with pytest.raises(KeyError):
        PAGES["nothing.html"]
