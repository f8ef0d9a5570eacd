"""What documents are: every modality decodes what it should, within its limits."""

import io
import struct
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest
from PIL import Image

import hotgrid.blt
from hotgrid.blt import MODALITIES, IngestSettings, View, modality_of
from hotgrid.blt._ingest._modalities import _code
from hotgrid.blt._ingest._outputs._report import image_of
from hotgrid.errors import DamagedError, MissingPartError

from .corpora import TEXT, elf, mach_o, pdf, pe, png, wav

SECTIONS = {"__one": b"\x90" * 33, "__two": b"some data"}


def views(data: bytes, name: str = "", **settings) -> list[View]:
    return modality_of(data, name).views(data, name, IngestSettings(**settings))


def film(seconds: int = 1) -> bytes:
    written = io.BytesIO()
    with av.open(written, "w", format="mp4") as file:
        stream = file.add_stream("mpeg4", rate=10)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        for n in range(10 * seconds):
            frame = av.VideoFrame.from_ndarray(np.full((48, 64, 3), 20 * n % 256, np.uint8))
            frame.pts, frame.time_base = n, Fraction(1, 10)
            file.mux(stream.encode(frame))
        file.mux(stream.encode(None))
    return written.getvalue()


def flac(samples: np.ndarray) -> bytes:
    written = io.BytesIO()
    with av.open(written, "w", format="flac") as file:
        stream = file.add_stream("flac", rate=16000, layout="mono")
        frame = av.AudioFrame.from_ndarray(samples[None], "s16", "mono")
        frame.sample_rate, frame.pts = 16000, 0
        file.mux(stream.encode(frame))
        file.mux(stream.encode(None))
    return written.getvalue()


EXAMPLES = {
    "image": (png(), "x"),
    "pdf": (pdf(["One page"]), "x"),
    "audio": (wav(), "x"),
    "video": (film(), "x"),
    "elf": (elf(SECTIONS), "x"),
    "pe": (pe({"__one": b"\x90" * 33, "__two": b"some data"}), "x"),
    "mach-o": (mach_o(SECTIONS), "x"),
    "code": (b"def f(): pass\n", "f.py"),
    "text": (TEXT, "x"),
    "bytes": (b"\x00\x01\x02\xff" * 10, "x"),
}


def test_every_modality_has_an_example():
    assert [each.name for each in MODALITIES] == list(EXAMPLES)


@pytest.mark.parametrize("kind", EXAMPLES)
def test_bytes_say_what_they_are(kind: str):
    data, name = EXAMPLES[kind]
    assert modality_of(data, name).name == kind
    found = views(data, name)
    assert found
    for view in found:
        assert view.data
        assert view.pieces
        for piece in view.pieces:
            assert 0 <= piece.start < piece.end <= len(view.data)
        if view.framed:
            assert [each.start for each in view.pieces[1:]] == [
                each.end for each in view.pieces[:-1]
            ]


@pytest.mark.parametrize("kind", EXAMPLES)
def test_parts_of_a_file_never_crash(kind: str):
    """Truncated anywhere: it is decoded, or refused with a `HotgridError`."""
    data, name = EXAMPLES[kind]
    for size in sorted({*range(1, min(len(data), 64)), *range(64, len(data), 97)}):
        part = data[:size]
        try:
            found = views(part, name)
        except DamagedError:
            continue
        for view in found:
            assert all(each.end <= len(view.data) for each in view.pieces)


@pytest.mark.parametrize(
    ("data", "name", "kind"),
    [
        (b"GIF89a" + bytes(20), "", "image"),
        (b"RIFF\0\0\0\0WEBPVP8 ", "", "image"),
        (b"ID3\x04" + bytes(20), "", "audio"),
        (b"\0\0\0\x18ftypmp42", "", "video"),
        (b"\xca\xfe\xba\xbe\0\0\0\x41" + bytes(20), "", "bytes"),  # a class of Java
        (b"MZ" + bytes(100), "", "bytes"),
        (b"#!/usr/bin/env python3\nprint(1)\n", "run", "code"),
        (b"#!/bin/sh\nls\n", "run", "code"),
        (b"fn main() {}", "main.rs", "code"),
        (b'MAGIC = b"%PDF-"\n', "pdf.py", "code"),
        (b"\x00\xff%PDF-1.4\n", "", "pdf"),
        (b"\xff\xfeh\0i\0", "", "text"),
        ("naïve".encode()[:4], "", "text"),  # the last character is cut
        (b"a,b\n1,2\n", "x.csv", "text"),
        (b"\x80\x81 not utf-8", "x.py", "bytes"),
        (b"ID3 is an algorithm for decision trees.\n", "", "text"),
        (b"OggS begins each page of a stream.\n", "", "text"),
        (b"fLaC is the mark of a format.\n", "", "text"),
        (b"GIF89a is a format of pictures.\n", "", "text"),
        (b"P6 processors were made in 1995.\n", "", "text"),
        (b"P6 1 2 3 and more\n", "", "image"),
        (b"P5\n# by a camera\n2 2\n255\nABCD", "", "image"),
        (b"", "", "text"),
    ],
)
def test_what_is_recognised(data: bytes, name: str, kind: str):
    assert modality_of(data, name).name == kind


def test_images_come_back_from_their_patches():
    pixels = np.random.default_rng(0).integers(0, 256, (37, 50, 3), dtype=np.uint8)
    written = io.BytesIO()
    Image.fromarray(pixels).save(written, "PNG")
    [view] = views(written.getvalue())
    assert len(view.data) == 3 * 4 * 768
    assert np.array_equal(image_of(np.frombuffer(view.data, np.uint8), view.extra), pixels)
    first, second = view.pieces[:2]
    assert (second.extra["x"], second.extra["y"]) == (16, 0)
    assert view.data[: first.end] == pixels[:16, :16].tobytes()


@pytest.mark.parametrize("form", ["PNG", "TIFF", "PPM"])
def test_images_of_16_bits_keep_their_greys(form: str):
    levels = np.arange(256, dtype=np.uint16).reshape(16, 16)
    written = io.BytesIO()
    Image.fromarray(levels * 257).save(written, form)
    [view] = views(written.getvalue())
    assert view.data == np.repeat(levels.astype(np.uint8).ravel(), 3).tobytes()


@pytest.mark.parametrize("values", [np.linspace(-1, 3, 256), np.arange(256) * 1_000_000])
def test_images_without_a_known_white_are_scaled_to_their_range(values: np.ndarray):
    kind = np.float32 if values.dtype == np.float64 else np.int32
    written = io.BytesIO()
    Image.fromarray(values.astype(kind).reshape(16, 16)).save(written, "TIFF")
    [view] = views(written.getvalue())
    found = np.frombuffer(view.data, np.uint8)[::3].astype(int)
    assert np.abs(found - np.arange(256)).max() <= 1
    assert found.min() == 0
    assert found.max() == 255


def test_plain_neighbours_of_an_image_are_one_piece():
    [view] = views(png(64, 16))
    assert [each.extra["merge_count"] for each in view.pieces] == [1, 1, 2]
    counts = np.bincount(np.frombuffer(view.data[:768], np.uint8), minlength=256) / 768
    bits = -sum(share * np.log2(share) for share in counts if share)
    assert view.pieces[0].extra["local_entropy"] == pytest.approx(bits, abs=1e-4)


def test_large_images_are_refused_before_they_are_decoded():
    written = io.BytesIO()
    Image.new("1", (15_000, 15_000)).save(written, "PNG")
    with pytest.raises(DamagedError, match=r"limit.*--decoded-bytes"):
        views(written.getvalue())
    with pytest.raises(DamagedError, match="2,400 bytes or more"):
        views(png(40, 20), decoded_bytes=2000)


@pytest.mark.parametrize("width", [1, 2, 3, 4])
@pytest.mark.parametrize("channels", [1, 2])
def test_wav_of_any_width(width: int, channels: int):
    [view] = views(wav(width, channels, 400))
    low = np.arange(400 * channels) % 100
    samples = (
        (low.astype(np.int16) - 128) * 256 if width == 1 else low if width == 2 else low * 0
    )
    assert view.data == samples.astype("<i2").tobytes()
    assert [each.end - each.start for each in view.pieces] == [
        320 * channels,
        320 * channels,
        160 * channels,
    ]
    assert view.extra == {"sample_rate": 16000, "channels": channels, "frame_size_samples": 160}


def test_other_sounds_by_pyav():
    samples = np.random.default_rng(0).integers(-(2**15), 2**15, 5000).astype(np.int16)
    [view] = views(flac(samples))
    assert view.data == samples.astype("<i2").tobytes()
    with pytest.raises(DamagedError, match="--decoded-bytes"):
        views(flac(samples), decoded_bytes=5000)


def test_every_second_frame_of_a_film():
    [view] = views(film())
    assert len(view.pieces) == 5
    assert len(view.data) == 5 * 3 * 224 * 224
    assert [each.extra["timestamp"] for each in view.pieces] == [0.0, 0.2, 0.4, 0.6, 0.8]
    means = [np.frombuffer(view.data[e.start : e.end], np.uint8).mean() for e in view.pieces]
    assert np.allclose(means, [0, 40, 80, 120, 160], atol=8)
    with pytest.raises(DamagedError, match="--decoded-bytes"):
        views(film(), decoded_bytes=300_000)


def test_views_of_a_pdf():
    data = pdf(["First page", "Second page"])
    [text] = views(data)
    assert [text.data[each.start : each.end].split() for each in text.pieces] == [
        [b"First", b"page"],
        [b"Second", b"page"],
    ]
    [raw] = views(data, pdf="raw")
    assert raw.data == data
    first, _ = views(data, pdf="image")
    assert first.extra["width"] == 1024
    pixels = image_of(np.frombuffer(first.data, np.uint8), first.extra)
    assert pixels.shape == (512, 1024, 3)
    assert pixels[0, 0].tolist() == [255, 255, 255]
    assert (pixels < 128).any()
    every = views(data, pdf="multiview")
    labels = [each.label for each in every]
    assert labels == ["pdf_raw", "pdf_text", "pdf_page_1_image", "pdf_page_2_image"]
    sources = {each.pieces[0].extra["source_id"] for each in every}
    assert len(sources) == 1
    with pytest.raises(DamagedError, match="--decoded-bytes"):
        views(data, pdf="image", decoded_bytes=1_000_000)
    with pytest.raises(DamagedError, match="no text; `--pdf image`"):
        views(pdf([""]))


@pytest.mark.parametrize("module", ["pypdfium2", "av"])
def test_missing_decoders_are_named(module: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(__import__("sys").modules, module, None)
    data = pdf(["x"]) if module == "pypdfium2" else film()
    with pytest.raises(
        MissingPartError, match=rf"{'pypdfium2' if 'pdf' in module else 'PyAV'}"
    ):
        views(data)


@pytest.mark.parametrize(
    ("data", "label"),
    [
        (elf({"__one": SECTIONS["__one"], "__two": SECTIONS["__two"]}), "elf_section_"),
        (pe(SECTIONS), "pe_section_"),
        (mach_o(SECTIONS), "macho_section___TEXT_"),
        (mach_o(SECTIONS, fat=True), "macho_section___TEXT_"),
    ],
    ids=["elf", "pe", "mach-o", "universal"],
)
def test_sections_of_executables(data: bytes, label: str):
    [view] = views(data)
    assert view.data == data
    found = {each.label: data[each.start : each.end] for each in view.pieces}
    for name, content in SECTIONS.items():
        assert found[label + name] == content


def test_sections_outside_of_the_file_are_left_out():
    data = bytearray(elf(SECTIONS))
    # The offset of the second section header.
    at = struct.unpack_from("<Q", data, 40)[0] + 64 + 24
    struct.pack_into("<Q", data, at, 2**63)
    [view] = views(bytes(data))
    assert "elf_section___one" not in {each.label for each in view.pieces}
    assert "elf_section___two" in {each.label for each in view.pieces}


PYTHON = b"import os\n\n@cache\ndef f():\n    return os\n\nclass A:\n    x = 1\n"
RUST = b"use std::io;\nfn main() { }\nstruct A;\n"


@pytest.mark.parametrize(
    ("source", "name", "kinds"),
    [
        (PYTHON, "a.py", ["import_statement", "decorated_definition", "class_definition"]),
        (RUST, "a.rs", ["use_declaration", "function_item", "struct_item"]),
    ],
)
def test_code_by_its_grammar(source: bytes, name: str, kinds: list[str]):
    [view] = views(source, name)
    assert view.data == source
    assert [each.label for each in view.pieces] == kinds
    second = view.pieces[1]
    assert source[second.start : second.end].startswith((b"@cache", b"fn main"))
    assert second.extra["language"] in ("python", "rust")
    for each in view.pieces:
        assert each.extra["start_row"] == source[: each.start].count(b"\n")
        assert each.extra["end_row"] == source[: each.end].count(b"\n")


def test_many_files_of_code_one_after_another():
    """Positions of nodes once damaged memory, which ended the process after some files."""
    for path in sorted(Path(hotgrid.blt.__file__).parent.rglob("*.py")):
        data = path.read_bytes()
        [view] = views(data, path.name)
        rows = [(each.extra["start_row"], each.extra["end_row"]) for each in view.pieces]
        assert rows == sorted(rows)
        assert rows[-1][1] <= data.count(b"\n")


def test_code_without_grammars(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(_code, "parser_of", lambda language: None)
    [view] = views(PYTHON, "a.py")
    assert [view.data[each.start :][:6] for each in view.pieces] == [
        b"import",
        b"@cache",
        b"class ",
        b"x = 1\n",
    ]
    [other] = views(RUST, "a.rs")
    assert [(each.label, each.confidence) for each in other.pieces] == [("code_snippet", 0.5)]
