"""Small inputs of every kind, and whether two corpora are the same bits."""

import gzip
import io
import json
import struct
import tarfile
import wave
import zipfile
from pathlib import Path

import numpy as np
from PIL import Image

TEXT = b"The lattice is warm, and a wave crosses it slowly. \xc3\xa9t\xc3\xa9.\n"
# What differs between runs: when they were, and the stamps of files.
NOT_COMPARED = {"run.toml", "complete.json", ".run.lock"}


def bits(folder: Path) -> dict[str, bytes]:
    """Every file of a corpus, by name."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in NOT_COMPARED
    }


def png(width: int = 40, height: int = 20, seed: int = 0) -> bytes:
    """An image of noise on the left, black on the right."""
    pixels = np.zeros((height, width, 3), np.uint8)
    left = (height, width // 2, 3)
    pixels[:, : width // 2] = np.random.default_rng(seed).integers(0, 256, left)
    written = io.BytesIO()
    Image.fromarray(pixels).save(written, "PNG")
    return written.getvalue()


def wav(width: int = 2, channels: int = 1, count: int = 400) -> bytes:
    """A sound of a rising ramp."""
    written = io.BytesIO()
    with wave.open(written, "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(width)
        file.setframerate(16000)
        samples = np.arange(count * channels, dtype="<i8") % 100
        file.writeframes(samples.view(np.uint8).reshape(-1, 8)[:, :width].tobytes())
    return written.getvalue()


def elf(sections: dict[str, bytes]) -> bytes:
    """An ELF file of 64 bits with sections of these bytes."""
    names = b"\0" + b"".join(name.encode() + b"\0" for name in [*sections, ".shstrtab"])
    body, headers, at = b"", [bytes(64)], 64
    for name, data in [*sections.items(), (".shstrtab", names)]:
        place = names.index(b"\0" + name.encode() + b"\0") + 1
        headers.append(struct.pack("<IIQQQQIIQQ", place, 1, 6, 0, at, len(data), 0, 0, 1, 0))
        body, at = body + data, at + len(data)
    start = b"\x7fELF\2\1\1" + bytes(9)
    start += struct.pack(
        "<HHIQQQIHHHHHH", 2, 62, 1, 0, 0, at, 0, 64, 0, 0, 64, len(headers), len(headers) - 1
    )
    return start + body + b"".join(headers)


def pe(sections: dict[str, bytes]) -> bytes:
    """A PE file with sections of these bytes."""
    head = b"MZ" + bytes(58) + struct.pack("<I", 64)
    head += b"PE\0\0" + struct.pack("<HHIIIHH", 0x8664, len(sections), 0, 0, 0, 0, 0)
    at, table, body = len(head) + 40 * len(sections), b"", b""
    for name, data in sections.items():
        table += name.encode().ljust(8, b"\0")
        table += struct.pack(
            "<IIIIIIHHI", len(data), 0x1000, len(data), at, 0, 0, 0, 0, 0x60000020
        )
        body, at = body + data, at + len(data)
    return head + table + body


def mach_o(sections: dict[str, bytes], fat: bool = False) -> bytes:
    """A Mach-O file of 64 bits with one segment of these sections."""
    size = 72 + 80 * len(sections)
    head = struct.pack("<IiiIIIII", 0xFEEDFACF, 7, 3, 2, 1, size, 0, 0)
    command = struct.pack(
        "<II16sQQQQiiII", 0x19, size, b"__TEXT", 0, 0, 0, 0, 7, 5, len(sections), 0
    )
    at, table, body = len(head) + size, b"", b""
    for name, data in sections.items():
        table += struct.pack(
            "<16s16sQQIIIIIIII",
            name.encode(),
            b"__TEXT",
            64,
            len(data),
            at,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
        )
        body, at = body + data, at + len(data)
    thin = head + command + table + body
    if not fat:
        return thin
    return (
        struct.pack(">IIiiIII", 0xCAFEBABE, 1, 7, 3, 64, len(thin), 0).ljust(64, b"\0") + thin
    )


def pdf(lines: list[str]) -> bytes:
    """A PDF with a page for each line."""
    kids = " ".join(f"{4 + 2 * n} 0 R" for n in range(len(lines)))
    objects = ["<< /Type /Catalog /Pages 2 0 R >>"]
    objects.append(f"<< /Type /Pages /Kids [{kids}] /Count {len(lines)} >>")
    objects.append("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>")
    for n, line in enumerate(lines):
        objects.append(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 200 100] "
            f"/Resources << /Font << /F1 3 0 R >> >> /Contents {5 + 2 * n} 0 R >>"
        )
        content = f"BT /F1 18 Tf 10 50 Td ({line}) Tj ET"
        objects.append(f"<< /Length {len(content)} >>\nstream\n{content}\nendstream")
    found, places = b"%PDF-1.4\n", []
    for number, each in enumerate(objects, 1):
        places.append(len(found))
        found += f"{number} 0 obj\n{each}\nendobj\n".encode()
    table = len(found)
    found += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n".encode()
    found += b"".join(f"{place:010} 00000 n \n".encode() for place in places)
    found += f"trailer\n<< /Size {len(objects) + 1} /Root 1 0 R >>\n".encode()
    return found + f"startxref\n{table}\n%%EOF\n".encode()


def tar(members: dict[str, bytes], mode: str = "w:gz") -> bytes:
    """A tar file."""
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode=mode) as archive:
        for name, data in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return written.getvalue()


def zipped(members: dict[str, bytes]) -> bytes:
    """A zip file."""
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
    return written.getvalue()


def write_mixed(folder: Path, texts: int = 6) -> None:
    """An input with something of every kind, duplicates, and files that cannot be read."""
    folder.mkdir(parents=True)
    for n in range(texts):
        (folder / f"text-{n:02}.txt").write_bytes(TEXT * (n + 1) + f"It is {n}.\n".encode())
    (folder / "again.txt").write_bytes((folder / "text-01.txt").read_bytes())
    (folder / "code.py").write_bytes(b"import os\n\n\ndef f():\n    return os\n")
    (folder / "image.png").write_bytes(png())
    (folder / "sound.wav").write_bytes(wav())
    (folder / "program").write_bytes(elf({".text": b"\x90" * 100, ".data": b"some data"}))
    (folder / "broken.png").write_bytes(png()[:100])
    (folder / "empty.txt").write_bytes(b"")
    (folder / "inner").mkdir()
    rows = [{"id": n, "text": f"row {n} of the lattice", "count": n} for n in range(5)]
    (folder / "inner" / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n{\n")
    (folder / "inner" / "some.tar.gz").write_bytes(
        tar({"a.txt": TEXT * 3, "b/c.bin": bytes(range(256)) * 4})
    )
    (folder / "inner" / "some.txt.gz").write_bytes(gzip.compress(b"packed " * 50, mtime=0))
