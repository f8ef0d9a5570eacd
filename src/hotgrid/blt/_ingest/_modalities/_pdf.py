"""PDF: the file itself, the text of its pages, and pictures of them."""

import ctypes
import hashlib
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any

import numpy as np

from hotgrid.blt._ingest._settings import IngestSettings
from hotgrid.blt._sidecar._graph import Leaf
from hotgrid.errors import DamagedError, HotgridError, MissingPartError

from ._image import image_view
from ._modality import Modality, View, expect_decoded
from ._text import Text

WIDTH = 1024
MOST_PAGES = 10_000


class Pdf(Modality):
    """PDF files; text and pictures of pages with PDFium."""

    name = "pdf"

    def accepts(self, head: bytes, name: str) -> bool:
        """Whether the first bytes are those of a PDF, or it begins after bytes of no text."""
        if head.lstrip().startswith(b"%PDF-"):
            return True
        return b"%PDF-" in head[:1024] and not Text().accepts(head, name)

    def views(self, data: bytes, name: str, settings: IngestSettings) -> list[View]:
        """The views that `settings.pdf` names; all pieces of a page have its `source_id`."""
        views: list[View] = []
        if settings.pdf in ("raw", "multiview"):
            views.append(View("pdf_raw", self.name, data, [Leaf("pdf_raw", 0, len(data))]))
        if settings.pdf != "raw":
            views.extend(_pages(data, settings))
        if settings.pdf == "multiview":
            source = hashlib.sha256(data).hexdigest()[:32]
            views = [_sourced(each, source) for each in views]
        return views


def _sourced(view: View, source: str) -> View:
    """A view whose first piece is joined with those of the other views of the same file."""
    first, *rest = view.pieces
    joined = replace(first, extra={**first.extra, "source_id": source})
    return replace(view, pieces=[joined, *rest])


def _pages(data: bytes, settings: IngestSettings) -> list[View]:
    pdfium = _pdfium()
    try:
        with closing(pdfium.PdfDocument(data)) as document:
            if len(document) > MOST_PAGES:
                raise DamagedError(
                    f"the PDF has {len(document):,} pages, above the limit of {MOST_PAGES:,}"
                )
            found: list[View] = []
            if settings.pdf in ("text", "multiview"):
                found.append(_text(document, settings))
            if settings.pdf in ("image", "multiview"):
                found.extend(_pictures(document, pdfium, settings))
            return found
    except HotgridError:
        raise
    except (pdfium.PdfiumError, ValueError, ctypes.ArgumentError) as problem:
        raise DamagedError(f"the PDF is damaged or locked: {problem}"[:300]) from None


def _text(document: Any, settings: IngestSettings) -> View:
    whole, pieces = bytearray(), []
    for number in range(len(document)):
        with closing(document[number]) as page, closing(page.get_textpage()) as text:
            # A character may be ten bytes in the file's own streams, or be repeated.
            expect_decoded(4 * text.count_chars(), settings)
            found = text.get_text_range().encode("utf-8", "replace") + b"\n"
        extra = {"page": number + 1, "page_count": len(document), "view": "text"}
        begin, end = len(whole), len(whole) + len(found)
        pieces.append(Leaf(f"pdf_page_{number + 1}_text", begin, end, 1.0, extra))
        whole += found
        expect_decoded(len(whole), settings)
    if not whole.strip():
        raise DamagedError("the PDF has no text; `--pdf image` takes pictures of its pages")
    return View("pdf_text", "text", bytes(whole), pieces)


def _pictures(document: Any, pdfium: Any, settings: IngestSettings) -> Iterator[View]:
    size = 0
    for number in range(len(document)):
        with closing(document[number]) as page:
            width, height = page.get_size()
            if not (width > 0 and 0 < height < 100 * width):
                raise DamagedError(f"page {number + 1} has the size {width} x {height}")
            scale = WIDTH / width
            size += 3 * WIDTH * (round(height * scale) + 1)
            expect_decoded(size, settings)
            with closing(page.render(scale=scale, rev_byteorder=True)) as bitmap:
                pixels = np.ascontiguousarray(bitmap.to_numpy()[..., :3])
        view = image_view(f"pdf_page_{number + 1}_image", pixels)
        yield replace(view, extra={**view.extra, "page": number + 1, "view": "image"})


def _pdfium() -> Any:
    try:
        import pypdfium2
    except ImportError:
        raise MissingPartError(
            "the pages of a PDF need pypdfium2: pip install 'hotgrid[pdf]', or `--pdf raw`"
        ) from None
    return pypdfium2
