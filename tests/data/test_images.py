"""Decoding, cropping and resizing: against Pillow, torchvision, and plain twins."""

import importlib
import io
import struct
import sys
import zlib
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import simplejpeg
import torch
from hypothesis import given, settings, strategies as st
from PIL import Image

from hotgrid.data import (
    CentreCrop,
    DecodeCentreCrop,
    DecodeImage,
    DecodeRandomCrop,
    Normalise,
    RandomFlip,
    RandomResizedCrop,
    Resize,
    SampleDraws,
)
from hotgrid.data._operators import _pixels
from hotgrid.errors import ArgumentError, DamagedError, MissingPartError


def photo(height: int, width: int, seed: int = 0, smooth: int = 8) -> np.ndarray:
    sizes = (height // smooth + 2, width // smooth + 2)
    noise = torch.rand(1, 3, *sizes, generator=gen(seed))
    large = torch.nn.functional.interpolate(noise, (height, width), mode="bicubic")
    return (large[0].clamp(0, 1) * 255).to(torch.uint8).permute(1, 2, 0).numpy()


def gen(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def saved(pixels: np.ndarray, kind: str = "JPEG", mode: str = "RGB", **options) -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels).convert(mode).save(file, kind, **options)
    return file.getvalue()


def by_pillow(data: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))


KINDS = {
    "baseline": saved(photo(61, 83), quality=90, subsampling="4:2:0"),
    "4:4:4": saved(photo(61, 83), quality=90, subsampling="4:4:4"),
    "progressive": saved(photo(61, 83), progressive=True),
    "grey": saved(photo(61, 83), mode="L"),
    "cmyk": saved(photo(61, 83), mode="CMYK"),
    "png": saved(photo(61, 83), "PNG"),
    "palette": saved(photo(61, 83), "PNG", "P"),
    "alpha": saved(photo(61, 83), "PNG", "RGBA"),
    "webp": saved(photo(61, 83), "WEBP"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_pixels_are_those_of_pillow(kind: str):
    assert np.array_equal(DecodeImage().run(KINDS[kind]), by_pillow(KINDS[kind]))


@pytest.mark.parametrize("kind", KINDS)
def test_pixels_are_the_same_without_simplejpeg(kind: str):
    with patch.object(_pixels, "_found", [None]):
        found = DecodeImage().run(KINDS[kind])
        small = DecodeCentreCrop(15, 20).run(KINDS[kind])
    assert np.array_equal(found, DecodeImage().run(KINDS[kind]))
    assert np.array_equal(small, DecodeCentreCrop(15, 20).run(KINDS[kind]))


def test_fast_decoding_needs_simplejpeg_and_is_close():
    for data, most in ((KINDS["grey"], 1), (saved(photo(61, 83, smooth=32)), 3)):
        exact = DecodeImage().run(data).astype(int)
        assert 0 < np.abs(DecodeImage(fast=True).run(data) - exact).mean() < most
    with (
        patch.object(_pixels, "_found", [None]),
        pytest.raises(MissingPartError, match="images"),
    ):
        DecodeImage(fast=True).run(KINDS["baseline"])


@settings(max_examples=25)
@given(st.integers(1, 90), st.integers(1, 90), st.integers(1, 60), st.integers(1, 60))
def test_resizing_is_that_of_pillow(height, width, high, wide):
    image = photo(height, width)
    found = Resize(high, wide).run(image).astype(int)
    expected = Image.fromarray(image).resize((wide, high), Image.Resampling.BILINEAR)
    # Both round once for every axis; rarely to the other side.
    assert np.abs(found - np.asarray(expected)).max() <= 1


def test_plain_resizing_is_that_of_opencv():
    cv2: Any = importlib.import_module("cv2")
    image = photo(61, 83)
    expected = cv2.resize(image[5:50, 7:60], (20, 30))
    slot = np.zeros((3, 30, 20, 3), np.uint8)
    found = Resize(30, 20, antialias=False).run(image[5:50, 7:60], out=slot[1])
    assert np.array_equal(found, expected)
    assert np.array_equal(slot[1], expected)
    plain = DecodeRandomCrop(24, 20, reduce=False, antialias=False)
    twin = RandomResizedCrop(24, 20, antialias=False)
    data = KINDS["baseline"]
    smooth = DecodeRandomCrop(24, 20, reduce=False).run(data, draws=SampleDraws(4))
    found = plain.run(data, draws=SampleDraws(4))
    assert np.array_equal(found, twin.run(DecodeImage().run(data), draws=SampleDraws(4)))
    assert not np.array_equal(found, smooth)
    assert not np.array_equal(
        DecodeCentreCrop(9, 9, antialias=False).run(data), DecodeCentreCrop(9, 9).run(data)
    )


def test_plain_resizing_says_what_it_needs(monkeypatch):
    monkeypatch.setitem(sys.modules, "cv2", None)
    _pixels._opencv.cache_clear()
    with pytest.raises(MissingPartError, match=r"hotgrid\[opencv\]"):
        Resize(5, 5, antialias=False).run(photo(9, 9))


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.sampled_from(sorted(KINDS)), st.booleans())
def test_the_fused_crop_is_decoding_then_cropping(key, kind, fast):
    fused = DecodeRandomCrop(24, 20, reduce=False, fast=fast)
    plain = DecodeImage(fast=fast).run(KINDS[kind])
    twin = RandomResizedCrop(24, 20).run(plain, draws=SampleDraws(key))
    assert np.array_equal(fused.run(KINDS[kind], draws=SampleDraws(key)), twin)


@settings(max_examples=60)
@given(
    st.sampled_from(["4:2:0", "4:2:2", "4:4:4"]),
    st.integers(20, 90),
    st.integers(1, 90),
    st.booleans(),
    st.sampled_from([1, 2, 4]),
    st.booleans(),
)
def test_rows_that_are_decoded_alone_are_those_of_the_image(
    colours, height, rows, fast, reduction, restarts
):
    rows = min(rows, height)
    options = {"restart_marker_rows": 1} if restarts else {}
    data = saved(photo(height, 33), quality=90, subsampling=colours, **options)
    head = _pixels.head_of(data, 10**6)
    more = {"fast": fast, "reduction": reduction}
    whole = _pixels.decoded(data, head, **more)
    found = _pixels.decoded(data, head, rows=rows, **more)
    needed = rows // reduction
    assert len(found) >= needed
    assert np.array_equal(found[:needed], whole[:needed])
    if rows + 32 < height:
        assert len(found) < len(whole)


@pytest.mark.parametrize("kind", ["progressive", "cmyk", "png", "grey", "4:4:4"])
def test_files_of_other_kinds_are_decoded_as_before(kind):
    head = _pixels.head_of(KINDS[kind], 10**6)
    found = _pixels.decoded(KINDS[kind], head, rows=20)
    assert np.array_equal(found[:20], by_pillow(KINDS[kind])[:20])
    assert (len(found) < 61) == (kind in ("grey", "4:4:4"))


def test_a_file_that_is_cut_off_is_damaged_though_the_crop_is_there():
    data = saved(photo(90, 33), quality=90)
    with pytest.raises(DamagedError):
        _pixels.decoded(data[:-300], _pixels.head_of(data, 10**6), rows=8)


def test_threads_do_not_share_memory():
    files = [saved(photo(61, 83, seed)) for seed in range(4)] * 8
    crop = DecodeRandomCrop(24, 20)
    alone = [crop.run(file, draws=SampleDraws(n)) for n, file in enumerate(files)]
    with ThreadPoolExecutor(4) as threads:
        found = threads.map(
            lambda n: crop.run(files[n], draws=SampleDraws(n)), range(len(files))
        )
    assert all(np.array_equal(a, b) for a, b in zip(alone, found, strict=True))


def test_large_photos_are_decoded_at_a_smaller_size():
    data = saved(photo(600, 900, smooth=64), quality=95)
    with patch.object(simplejpeg, "decode_jpeg", wraps=simplejpeg.decode_jpeg) as decode:
        reduced = DecodeCentreCrop(64, 64).run(data)
    # 525 of 600 pixels remain; an eighth of them is 65. Rows below 576 are not decoded.
    assert decode.call_args.kwargs["min_height"] == 72
    # Edges are multiples of 8: 40 to 560 of the rows, 192 to 712 of the columns.
    part = Image.fromarray(by_pillow(data)[40:560, 192:712])
    whole = np.asarray(part.resize((64, 64), Image.Resampling.BILINEAR)).astype(int)
    assert np.abs(reduced - whole).mean() < 1.5
    with patch.object(_pixels, "_found", [None]):
        assert np.array_equal(DecodeCentreCrop(64, 64).run(data), reduced)


def test_a_crop_that_is_too_small_is_decoded_whole():
    data = saved(photo(100, 100))
    for crop in (DecodeCentreCrop(64, 64), DecodeRandomCrop(64, 64, area=(0.5, 1.0))):
        with patch.object(simplejpeg, "decode_jpeg", wraps=simplejpeg.decode_jpeg) as decode:
            crop.run(data, **({"draws": SampleDraws(1)} if crop.random else {}))
        assert "min_height" not in decode.call_args.kwargs


def test_the_centre_is_the_centre():
    image = np.zeros((50, 70, 3), np.uint8)
    image[20:30, 30:40] = 255
    data = saved(image, "PNG")
    assert (DecodeCentreCrop(10, 10, share=0.2).run(data) == 255).all()
    assert (CentreCrop(10, 10).run(image) == 255).all()
    assert DecodeCentreCrop(50, 50, share=1.0).run(data).mean() == pytest.approx(255 / 25)


def test_random_boxes_have_the_distribution_of_torchvision():
    draws = np.random.default_rng(0)

    def published() -> tuple[int, int, int, int]:
        """The definition in torchvision's documentation, for an image of 60x100."""
        while True:
            area = 6000 * draws.uniform(0.08, 1.0)
            aspect = np.exp(draws.uniform(np.log(3 / 4), np.log(4 / 3)))
            wide, high = round((area * aspect) ** 0.5), round((area / aspect) ** 0.5)
            if wide <= 100 and high <= 60:
                break
        top, left = draws.integers(0, 60 - high, endpoint=True), draws.integers(0, 101 - wide)
        return int(top), int(left), high, wide

    theirs = np.array([published() for _ in range(4000)], float)
    own = [
        _pixels_box(60, 100, (0.08, 1.0), (3 / 4, 4 / 3), SampleDraws(n)) for n in range(4000)
    ]
    ours = np.array(own, float)
    for column in range(4):
        # Kolmogorov-Smirnov: 1.95 sqrt(2 / n) is exceeded once in a thousand.
        grid = np.arange(101)
        one = np.searchsorted(np.sort(ours[:, column]), grid, "right") / 4000
        two = np.searchsorted(np.sort(theirs[:, column]), grid, "right") / 4000
        assert np.abs(one - two).max() < 1.95 * (2 / 4000) ** 0.5


def _pixels_box(*arguments):
    from hotgrid.data._operators._random_resized_crop import random_box

    return random_box(*arguments)


@given(st.integers(1, 300), st.integers(1, 300), st.integers(0, 10**6))
def test_random_boxes_are_inside(height, width, key):
    top, left, high, wide = _pixels_box(
        height, width, (0.08, 1.0), (0.75, 4 / 3), SampleDraws(key)
    )
    assert 0 <= top <= top + high <= height
    assert 0 <= left <= left + wide <= width
    assert high > 0 < wide


def test_normalising_is_the_formula():
    image = photo(9, 7)
    mean, std = (0.1, 0.2, 0.3), (0.5, 0.6, 0.7)
    expected = (image / 255 - np.array(mean)) / np.array(std)
    np.testing.assert_allclose(Normalise(mean, std).run(image), expected, rtol=1e-5, atol=1e-6)


def test_flipping_happens_as_often_as_asked():
    image = photo(5, 6)
    found = [RandomFlip(0.25).run(image, draws=SampleDraws(n)) for n in range(2000)]
    flipped = [np.array_equal(each, image[:, ::-1]) for each in found]
    assert all(f or np.array_equal(x, image) for f, x in zip(flipped, found, strict=True))
    assert abs(np.mean(flipped) - 0.25) < 4 * (0.25 * 0.75 / 2000) ** 0.5


def png_head(width: int, height: int) -> bytes:
    """A PNG whose header promises a size, with next to no data: a bomb."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data))
            + kind
            + data
            + struct.pack(">I", zlib.crc32(kind + data))
        )

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"0"))


def jpeg_head(width: int, height: int) -> bytes:
    data = bytearray(saved(photo(16, 16)))
    at = data.index(b"\xff\xc0")
    data[at + 5 : at + 9] = struct.pack(">HH", height, width)
    return bytes(data)


@pytest.mark.parametrize(
    "bomb", [png_head(9000, 9000), jpeg_head(60000, 60000)], ids=["png", "jpg"]
)
@pytest.mark.parametrize(
    "crop", [DecodeImage(), DecodeCentreCrop(8, 8)], ids=["plain", "fused"]
)
def test_a_bomb_is_refused_before_it_is_decoded(bomb, crop):
    with pytest.raises(DamagedError, match=r"pixels, more than `most_pixels`"):
        crop.run(bomb)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"not an image",
        KINDS["baseline"][:200],
        KINDS["baseline"][:-400],
        KINDS["png"][:99],
    ],
    ids=["empty", "text", "head", "cut jpeg", "cut png"],
)
def test_damaged_images_are_named(data):
    with pytest.raises(DamagedError):
        DecodeImage().run(data)


@settings(max_examples=60)
@given(st.sampled_from(sorted(KINDS)), st.integers(0, 10**6), st.integers(0, 255))
def test_a_wrong_byte_is_an_image_or_damaged(kind, at, byte):
    data = bytearray(KINDS[kind])
    data[at % len(data)] = byte
    try:
        found = DecodeImage(most_pixels=10**6).run(bytes(data))
    except DamagedError:
        return
    assert found.dtype == np.uint8 and found.shape[2] == 3


def test_sixteen_bits_are_refused():
    deep = Image.fromarray(np.full((4, 4), 300, np.uint16))
    file = io.BytesIO()
    deep.save(file, "PNG")
    with pytest.raises(DamagedError, match="mode I;16"):
        DecodeImage().run(file.getvalue())


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Resize(0, 4), "`height` is 0"),
        (lambda: RandomResizedCrop(4, 4, area=(0.5, 1.5)), "`area`"),
        (lambda: RandomResizedCrop(4, 4, ratio=(2.0, 1.0)), "`ratio`"),
        (lambda: DecodeCentreCrop(4, 4, share=0.0), "`share`"),
        (lambda: RandomFlip(1.5), "`probability`"),
        (lambda: Normalise((0.1,), (0.0,)), "`std`"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_wrong_settings_are_named(make, words):
    with pytest.raises(ArgumentError, match=words):
        make()
