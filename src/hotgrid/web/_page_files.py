"""`PageFiles`: the files of a page, read once; no other file is served."""

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

_KINDS = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".json": "application/json",
}


class PageFiles:
    """The files of an application's pages at `/page/`, and those that all share at `/web/`.

    Both are read at once into a table, so that no path can lead to other files.

    Args:
        package: The package with the folder `page`, such as `hotgrid.grid.view`.

    Example:
        >>> pages = PageFiles("hotgrid.grid.view")
        >>> pages["view.html"].media_type
        'text/html; charset=utf-8'
    """

    def __init__(self, package: str) -> None:
        self._files = {"page": _read(package), "web": _read("hotgrid.web")}

    def __getitem__(self, name: str) -> Response:
        """A file of the application, ready to be sent."""
        return self._files["page"][name]

    def home(self, name: str) -> Route:
        """The route `/` to a file of the application."""

        async def send(request: Request) -> Response:
            return self[name]

        return Route("/", send)

    def route(self) -> Route:
        """The route to all files; it comes after those of the application."""
        return Route("/{kind:str}/{path:path}", self._send)

    async def _send(self, request: Request) -> Response:
        kind, path = request.path_params["kind"], request.path_params["path"]
        found = self._files.get(kind, {}).get(path)
        return found or PlainTextResponse("no such file\n", 404)


def _read(package: str) -> Mapping[str, Response]:
    folder = Path(str(files(package) / "page"))
    return {
        path.relative_to(folder).as_posix(): Response(
            path.read_bytes(), media_type=_KINDS[path.suffix]
        )
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.suffix in _KINDS
    }
