"""The files of a page, read once; no other file is served."""

from pathlib import Path

from starlette.responses import Response

_KINDS = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".json": "application/json",
}


def page_files(folder: Path) -> dict[str, Response]:
    """The files under a folder, by their path below it, ready to be sent.

    A table made in advance cannot be led out of its folder.
    """
    return {
        path.relative_to(folder).as_posix(): Response(
            path.read_bytes(), media_type=_KINDS[path.suffix]
        )
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.suffix in _KINDS
    }
