"""Images: decoded to RGB and taken in patches of 16 x 16 pixels."""

import io
import re
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotgrid.blt._ingest._settings import IngestSettings
from hotgrid.blt._sidecar._graph import Leaf
from hotgrid.errors import DamagedError, MissingPartError

from ._modality import Modality, View, expect_decoded
from ._text import Text

PATCH = 16
_BYTES = PATCH * PATCH * 3
_PLAIN_BITS = 1.5
"""Neighbours whose bytes have less entropy than this become one piece."""

# By name: others, such as EPS, would start a program.
_FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF", "PPM")
_MAGICS = (
    b"\x89PNG\r\n\x1a\n",
    b"\xff\xd8\xff",
    b"GIF87a",
    b"GIF89a",
    b"II*\0",
    b"MM\0*",
)
# Width, height and the largest value, with comments between them.
_PLAIN = re.compile(rb"P[56](?=[\s#])(?:(?:\s*#[^\n]*\n)*\s*\d+\b){3}\s")


class Picture(Modality):
    """Images that Pillow decodes; of a moving one, the first."""

    name = "image"

    def accepts(self, head: bytes, name: str) -> bool:
        """Whether the first bytes are those of an image."""
        if _PLAIN.match(head):
            return True
        webp = head[:4] == b"RIFF" and head[8:12] == b"WEBP"
        bitmap = head[:2] == b"BM" and head[6:10] == bytes(4) and len(head) > 25
        # A text may begin with the same letters.
        return (head.startswith(_MAGICS) or webp or bitmap) and not Text().accepts(head, name)

    def views(self, data: bytes, name: str, settings: IngestSettings) -> list[View]:
        """The patches from left to right and top to bottom; the edge is padded with black."""
        pixels = _decoded(data, settings)
        return [image_view("image", pixels)]


def image_view(label: str, pixels: NDArray[np.uint8]) -> View:
    """The view of an image with the shape (height, width, 3)."""
    height, width, _ = pixels.shape
    rows, columns = -(-height // PATCH), -(-width // PATCH)
    padded = np.zeros((rows * PATCH, columns * PATCH, 3), np.uint8)
    padded[:height, :width] = pixels
    blocks = padded.reshape(rows, PATCH, columns, PATCH, 3).transpose(0, 2, 1, 3, 4)
    flat = np.ascontiguousarray(blocks).reshape(rows * columns, _BYTES)
    return View(
        label,
        "image",
        flat.tobytes(),
        _pieces(flat, columns),
        {"width": width, "height": height, "patch_size": PATCH},
        framed=True,
    )


def _pieces(flat: NDArray[np.uint8], columns: int) -> list[Leaf]:
    bits = _entropies(flat)
    # A patch joins the one before it if both have few different bytes.
    joins = np.zeros(len(flat), bool)
    joins[1:] = (bits[1:] + bits[:-1]) / 2 < _PLAIN_BITS
    first = np.flatnonzero(~joins)
    ends = np.append(first[1:], len(flat))
    found = []
    for begin, end in zip(first.tolist(), ends.tolist(), strict=True):
        extra = {
            "x": begin % columns * PATCH,
            "y": begin // columns * PATCH,
            "patch_size": PATCH,
            "merge_count": end - begin,
            "local_entropy": round(float(bits[begin:end].mean()), 4),
        }
        found.append(Leaf("image_patch", begin * _BYTES, end * _BYTES, 1.0, extra))
    return found


def _entropies(flat: NDArray[np.uint8]) -> NDArray[np.float64]:
    """The entropy in bits of the bytes of each row."""
    found = np.empty(len(flat))
    for begin in range(0, len(flat), 1024):
        part = flat[begin : begin + 1024]
        keys = part.astype(np.int64) + 256 * np.arange(len(part))[:, None]
        share = np.bincount(keys.ravel(), minlength=256 * len(part)).reshape(-1, 256)
        share = share / part.shape[1]
        logs = np.log2(share, where=share > 0, out=np.zeros_like(share))
        found[begin : begin + len(part)] = -(share * logs).sum(1)
    return found


def _decoded(data: bytes, settings: IngestSettings) -> NDArray[np.uint8]:
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError:
        raise MissingPartError("images need Pillow: pip install pillow") from None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # such as of damaged EXIF data
        try:
            with Image.open(io.BytesIO(data), formats=_FORMATS) as image:
                width, height = image.size
                expect_decoded(3 * width * height, settings)
                return _rgb(image)
        except DamagedError:
            raise
        except Image.DecompressionBombError as problem:
            raise DamagedError(
                f"{problem}, above the limit, --decoded-bytes (a decompression bomb?)"
            ) from None
        except UnidentifiedImageError:
            raise DamagedError("the image is damaged: it cannot be identified") from None
        except Exception as problem:  # noqa: BLE001 - decoders raise whatever they meet
            raise DamagedError(f"the image is damaged: {problem}"[:300]) from None


def _rgb(image: Any) -> NDArray[np.uint8]:
    """The colours of an image; where they have more than 8 bits, Pillow would clip them."""
    if not image.mode.startswith(("I", "F")):
        return np.asarray(image.convert("RGB"))
    values = np.nan_to_num(np.asarray(image).astype(np.float32), posinf=0.0, neginf=0.0)
    low, high = 0.0, 65535.0
    if image.format == "TIFF" and not image.mode.startswith("I;16"):
        # Their white is not known.
        low, high = float(values.min()), float(values.max())
    scaled = (values - low) * np.float32(255.999 / max(high - low, 1e-30))
    return np.repeat(scaled.astype(np.uint8)[:, :, None], 3, axis=2)
