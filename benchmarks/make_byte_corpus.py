"""Make a corpus of bytes from folders, zip files and git repositories.

    python benchmarks/make_byte_corpus.py OUT KIND[/held]:LICENCE=PATH[:GLOB] ...
    python benchmarks/make_byte_corpus.py out/corpus "prose:CC0=eips:*.md" "code:PSF=lib:*.py"

A kind is prose, code, markup, other (such as languages other than English) or binary. Pictures
of a `binary` source are decoded to RGB patches of 16 x 16, other files are taken as
they are. A document comes once, however often its bytes occur. About one in --hold-out is held
out as a whole, by the hash of its bytes, and all of a source with `/held`. `corpus.json` has
the sources with their licences and bytes, and the sha256 of what was written.
"""

import fnmatch
import hashlib
import io
import json
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from byte_corpus import MIX
from options import parser

from hotgrid.blt import byte_ids

PICTURES = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp")
PATCH = 16


def in_folder(place: Path) -> Iterator[tuple[str, bytes]]:
    for path in sorted(place.rglob("*")):
        if path.is_file() and not path.is_symlink() and ".git" not in path.parts:
            yield str(path.relative_to(place)), path.read_bytes()


def in_zip(place: Path) -> Iterator[tuple[str, bytes]]:
    with zipfile.ZipFile(place) as archive:
        for name in sorted(archive.namelist()):
            if not name.endswith("/"):
                yield name, archive.read(name)


def in_repository(place: Path) -> Iterator[tuple[str, bytes]]:
    """The files of HEAD, without a work tree; those that are not stored are left out."""
    git = ["git", "-C", str(place)]
    listed = subprocess.run(
        [*git, "ls-tree", "-r", "-z", "HEAD"], check=True, capture_output=True
    ).stdout
    entries = [each.split(b"\t", 1) for each in listed.split(b"\0") if each]
    blobs = [(info.split()[2], name) for info, name in entries if info.split()[1] == b"blob"]
    asked = b"".join(name + b"\n" for name, _ in blobs)
    answer = subprocess.run(
        [*git, "cat-file", "--batch"], input=asked, check=True, capture_output=True
    ).stdout
    stream = io.BytesIO(answer)
    for _, name in blobs:
        head = stream.readline().split()
        if len(head) == 3:
            data = stream.read(int(head[2]))
            stream.read(1)
            yield name.decode("utf-8", "replace"), data


def files(place: Path, pattern: str) -> Iterator[tuple[str, bytes]]:
    if place.suffix == ".zip":
        found = in_zip(place)
    elif (place / "HEAD").is_file():
        found = in_repository(place)
    else:
        found = in_folder(place)
    for name, data in found:
        if fnmatch.fnmatch(name, pattern):
            yield name, data


def decoded(name: str, data: bytes) -> bytes:
    """The RGB patches of a picture, each 16 x 16 in rows; other data as it is."""
    if not name.lower().endswith(PICTURES):
        return data
    from PIL import Image

    try:
        picture = np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))
    except (OSError, ValueError, Image.DecompressionBombError):
        return b""
    rows, columns = (size // PATCH * PATCH for size in picture.shape[:2])
    tiles = picture[:rows, :columns].reshape(rows // PATCH, PATCH, columns // PATCH, PATCH, 3)
    return tiles.swapaxes(1, 2).tobytes()


def is_text(data: bytes) -> bool:
    try:
        return b"\0" not in data and bool(data.decode())
    except UnicodeDecodeError:
        return False


def main() -> None:
    options = parser(__doc__, ["cpu"])
    options.add_argument("out", type=Path)
    options.add_argument("sources", nargs="+", metavar="KIND[/held]:LICENCE=PATH[:GLOB]")
    options.add_argument("--hold-out", type=int, default=40)
    chosen = options.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    seen: set[bytes] = set()
    ids: dict[str, list[np.ndarray]] = {}
    rows = []
    for source in chosen.sources:
        about, _, where = source.partition("=")
        kind, _, licence = about.partition(":")
        kind, _, part = kind.partition("/")
        path, _, pattern = where.partition(":")
        if kind not in MIX:
            options.error(f"{source!r}: {kind!r} is not one of {', '.join(MIX)}")
        size = count = 0
        for name, found in files(Path(path), pattern or "*"):
            data = decoded(name, found) if kind == "binary" else found
            if len(data) < 64 or (kind != "binary" and not is_text(data)):
                continue
            digest = hashlib.sha256(data).digest()
            if digest in seen:
                continue
            seen.add(digest)
            held = int.from_bytes(digest[:4], "big") % chosen.hold_out == 0 or part == "held"
            made = byte_ids(data, bos=True, eos=True).numpy().astype(np.uint16)
            ids.setdefault(f"{'valid' if held else 'train'}-{kind}", []).append(made)
            size, count = size + len(data), count + 1
        print(f"{size / 1e6:8.2f} MB {count:6d} documents  {source}")
        name = next(part for part in reversed(Path(path).parts) if part not in (".git", "repo"))
        rows.append({"kind": kind, "licence": licence, "source": name, "pattern": pattern})
        rows[-1] |= {"held": part == "held", "bytes": size, "documents": count}
    digests = {}
    for name, parts in ids.items():
        whole = np.concatenate(parts)
        np.save(chosen.out / f"{name}.npy", whole)
        digests[name] = hashlib.sha256(whole.tobytes()).hexdigest()
        print(f"{len(whole) / 1e6:8.2f} MB {len(parts):6d} documents  {name}")
    card = {"sources": rows, "sha256": digests, "hold out": chosen.hold_out}
    (chosen.out / "corpus.json").write_text(json.dumps(card, indent=1))


if __name__ == "__main__":
    main()
