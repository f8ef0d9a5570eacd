"""Decoding and resizing of images, for the operators: bytes to uint8 `[height, width, 3]`."""

import importlib
import io
import threading
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from hotgrid.errors import DamagedError, MissingPartError

from ._jpeg_rows import first_rows

Pixels = NDArray[np.uint8]
# 64 megapixels are 192 MiB.
MOST_PIXELS = 1 << 26


class Head(NamedTuple):
    """The header of an image; `colours` are of a JPEG that simplejpeg decodes."""

    height: int
    width: int
    jpeg: bool
    colours: str = ""


class _Scratch(threading.local):
    """Memory of a thread that every sample uses again."""

    def __init__(self) -> None:
        self._parts: dict[str, Pixels] = {}

    def part(self, name: str, size: int) -> Pixels:
        found = self._parts.get(name)
        if found is None or len(found) < size:
            found = self._parts[name] = np.empty(size, np.uint8)
        return found


_scratch = _Scratch()


def head_of(data: bytes, most_pixels: int) -> Head:
    """Read the size of an image from its header, before anything is decoded.

    Raises:
        DamagedError: It is not an image, or has more pixels than allowed.
    """
    found = _jpeg_head(data)
    if found is None:
        image = _opened(data)
        found = Head(image.height, image.width, image.format == "JPEG")
    if found.height * found.width > most_pixels:
        raise DamagedError(
            f"it has {found.height}x{found.width} pixels, more than `most_pixels` {most_pixels}"
        )
    return found


def decoded(
    data: bytes,
    head: Head,
    *,
    rows: int | None = None,
    fast: bool = False,
    reduction: int = 1,
    reuse: bool = False,
) -> Pixels:
    """Decode an image to RGB.

    Args:
        data: The file.
        head: What its header says.
        rows: How many of its rows are needed; those below may be missing in the result.
        fast: The fast inverse DCT and plain chroma upsampling of libjpeg, by simplejpeg.
        reduction: Decode a JPEG at one of 1, 1/2, 1/4 and 1/8 of its size.
        reuse: Return memory that the next image of this thread overwrites.

    Raises:
        DamagedError: It cannot be decoded.
        MissingPartError: `fast` needs simplejpeg.
    """
    simplejpeg = _simplejpeg()
    if fast and simplejpeg is None:
        raise MissingPartError("`fast` needs simplejpeg: pip install 'hotgrid[images]'")
    if head.colours and simplejpeg is not None:
        part, tall = data, head.height
        if rows is not None:
            part, tall = first_rows(data, head.height, head.colours, rows)
        height, width = -(-tall // reduction), -(-head.width // reduction)
        buffer = _scratch.part("decoded", height * width * 3) if reuse else None
        limits: dict[str, Any] = (
            {"min_height": height, "min_width": width} if reduction > 1 else {}
        )
        try:
            # What follows the rows that are needed looks wrong to the decoder.
            limits["strict"] = tall == head.height
            return simplejpeg.decode_jpeg(
                part, "RGB", fastdct=fast, fastupsample=fast, buffer=buffer, **limits
            )
        except ValueError:
            # Pillow may still decode it; its result is final.
            pass
    return _by_pillow(data, head, reduction)


def resized(
    image: Pixels, height: int, width: int, out: Pixels | None, antialias: bool = True
) -> Pixels:
    """Resize an image: bilinear with antialiasing, as Pillow does, or plain, as OpenCV does.

    Raises:
        MissingPartError: Without antialiasing it needs OpenCV.
    """
    if out is None or not out.flags.c_contiguous:
        out = np.empty((height, width, image.shape[2]), np.uint8)
    if image.shape[:2] == (height, width):
        np.copyto(out, image)
        return out
    if not antialias:
        _opencv().resize(image, (width, height), dst=out)
        return out
    if not image.flags.c_contiguous:
        # The kernel is slower on a view than a copy takes.
        part = _scratch.part("cropped", image.size)[: image.size].reshape(image.shape)
        np.copyto(part, image)
        image = part
    elif not image.flags.writeable:
        image = image.copy()
    torch.ops.aten._upsample_bilinear2d_aa.out(
        torch.from_numpy(image).permute(2, 0, 1)[None],
        [height, width],
        False,
        None,
        None,
        out=torch.from_numpy(out).permute(2, 0, 1)[None],
    )
    return out


def reduction_for(head: Head, crop: tuple[int, int], size: tuple[int, int]) -> int:
    """How much smaller a JPEG can be decoded so that the crop is still as large as asked."""
    if not head.jpeg:
        return 1
    found = 1
    while found < 8 and crop[0] >= size[0] * found * 2 and crop[1] >= size[1] * found * 2:
        found *= 2
    return found


def _jpeg_head(data: bytes) -> Head | None:
    """The header as simplejpeg reads it; None where Pillow decides."""
    simplejpeg = _simplejpeg()
    if simplejpeg is None or data[:3] != b"\xff\xd8\xff":
        return None
    try:
        height, width, space, colours = simplejpeg.decode_jpeg_header(data, strict=False)
    except (ValueError, KeyError):
        return None
    return Head(height, width, True, colours if space in ("YCbCr", "Gray") else "")


def _by_pillow(data: bytes, head: Head, reduction: int) -> Pixels:
    image = _opened(data)
    # Sixteen bits and floats would be cut off at 255.
    if image.mode.startswith(("I", "F")):
        raise DamagedError(f"its pixels are of mode {image.mode}; hotgrid decodes 8 bits")
    try:
        if reduction > 1:
            # It takes the largest reduction that leaves at least this size.
            image.draft("RGB", (head.width // reduction, head.height // reduction))
        found = np.asarray(image.convert("RGB"))
    except Exception as problem:  # noqa: BLE001 - of plugins, which raise what they like
        raise DamagedError(f"it cannot be decoded: {problem}") from None
    return found


def _opened(data: bytes) -> Any:
    from PIL import Image, UnidentifiedImageError

    try:
        return Image.open(io.BytesIO(data))
    except UnidentifiedImageError:
        # Its text is the address of the buffer, another in every run.
        raise DamagedError("it is not an image of a kind that Pillow knows") from None
    except Exception as problem:  # noqa: BLE001 - the same
        raise DamagedError(f"it is not an image: {str(problem)[:80]}") from None


@cache
def _opencv() -> Any:
    try:
        # By name: it is too large to be installed wherever types are checked.
        return importlib.import_module("cv2")
    except ImportError:
        raise MissingPartError(
            "`antialias=False` needs OpenCV: pip install 'hotgrid[opencv]'"
        ) from None


_found: list[Any] = []


def _simplejpeg() -> Any:
    if not _found:
        try:
            import simplejpeg

            _found.append(simplejpeg)
        except ImportError:
            _found.append(None)
    return _found[0]
