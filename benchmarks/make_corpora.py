"""Make texts for the token benchmarks from Debian packages: 20 MB English, 20 MB mixed.

    python benchmarks/make_corpora.py [--folder .hotgrid/corpora] [--debs FOLDER]

Needs `apt-get download` and `dpkg-deb`, and the network once: packages stay in the folder.
The same packages give the same bytes; their versions and the sha256 of each corpus are
kept beside it. A corpus is a JSON list of documents of at most 20,000 characters.
"""

import fnmatch
import gzip
import hashlib
import html.parser
import io
import json
import random
import re
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from options import parser

FOLDER = Path(__file__).parents[1] / ".hotgrid" / "corpora"
CHARACTERS = 20_000
MEGABYTE = 1_000_000
Kind = Literal["text", "html", "emoji"]


@dataclass(frozen=True)
class Source:
    """Files of a package: which, what they are, and how many bytes of text to take."""

    package: str
    files: str
    bytes: float
    kind: Kind = "text"

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise ValueError(f"{self.package}: {self.kind!r} is not one of {get_args(Kind)}")


CORPORA = {
    "english": [
        # An FAQ of book length, a dictionary of computing, the jargon file, sayings.
        Source("anarchism", "*/markdown/*.md*", 9 * MEGABYTE),
        Source("dict-foldoc", "*/foldoc.dict.dz", 2.5 * MEGABYTE),
        Source("jargon-text", "*/jargon.txt.gz", 1 * MEGABYTE),
        Source("fortunes", "*/games/fortunes/*[!t]", 1.5 * MEGABYTE),
        Source("python3.11-doc", "*/_sources/*.txt", 6 * MEGABYTE),
    ],
    "mixed": [
        Source("python3-sympy", "*/sympy/[a-h]*.py", 2.5 * MEGABYTE),
        Source("libeigen3-dev", "*/eigen3/*.h", 2 * MEGABYTE),
        Source("golang-1.19-src", "*/go-1.19/src/*.go", 2.4 * MEGABYTE),
        # Japanese, Chinese, Russian, Devanagari (Hindi, Marathi), German.
        Source("libreoffice-help-ja", "*/help/ja/text/*.html", 1.9 * MEGABYTE, "html"),
        Source("manpages-ja", "*/man/ja/man*/*.gz", 1 * MEGABYTE),
        Source("libreoffice-help-zh-cn", "*/help/zh-CN/text/*.html", 1.7 * MEGABYTE, "html"),
        Source("fortunes-zh", "*/fortunes/*[!t]", 1.3 * MEGABYTE),
        Source("libreoffice-help-ru", "*/help/ru/text/*.html", 2.6 * MEGABYTE, "html"),
        Source("libreoffice-help-hi", "*/help/hi/text/*.html", 0.4 * MEGABYTE, "html"),
        Source("gnome-user-docs", "*/help/[hm][ir]/*.page", 0.69 * MEGABYTE, "html"),
        Source("fortunes-de", "*/fortunes/de/*[!t]", 1 * MEGABYTE),
        # Names of emoji in many languages, with the emoji.
        Source("unicode-cldr-core", "*/common/annotations/*.xml", 2.4 * MEGABYTE, "emoji"),
    ],
}


class Words(html.parser.HTMLParser):
    """The text of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self._hidden = 0

    def handle_starttag(self, tag, attrs) -> None:
        """Enter an element."""
        self._hidden += tag in ("script", "style", "head")

    def handle_endtag(self, tag) -> None:
        """Leave an element."""
        self._hidden -= tag in ("script", "style", "head")

    def handle_data(self, data) -> None:
        """Keep a text."""
        if not self._hidden:
            self.parts.append(data)


def package_file(package: str, folder: Path) -> Path:
    """The package, fetched if it is not there."""
    found = sorted(folder.glob(f"{package}_*.deb"))
    if not found:
        print(f"fetching {package}", flush=True)
        folder.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(["apt-get", "download", "-qq", package], cwd=folder, check=False)
        found = sorted(folder.glob(f"{package}_*.deb"))
        if done.returncode or not found:
            sys.exit(f"{package} cannot be fetched; put its .deb into {folder}")
    return found[-1]


def texts(source: Source, deb: Path) -> Iterator[str]:
    """Texts of the files that are wanted, in the order of their names."""
    unpacked = subprocess.run(
        ["dpkg-deb", "--fsys-tarfile", deb], stdout=subprocess.PIPE, check=True
    )
    seen: set[str] = set()
    with tarfile.open(fileobj=io.BytesIO(unpacked.stdout)) as tar:
        for member in sorted(tar, key=lambda member: member.name):
            if not member.isfile() or not fnmatch.fnmatch(member.name, source.files):
                continue
            data = tar.extractfile(member).read()
            if member.name.endswith((".gz", ".dz")):
                data = gzip.decompress(data)
            try:
                yield plain(data.decode(), source.kind, seen)
            except UnicodeDecodeError:
                continue  # an old file in another encoding


def plain(text: str, kind: Kind, seen: set[str]) -> str:
    """The text of a file without its markup."""
    if kind == "emoji":
        found = re.findall(r'<annotation cp="([^"]+)"[^>]*>([^<]+)<', text)
        return html.unescape("\n".join(f"{emoji} {names}" for emoji, names in found))
    if kind == "html":
        reader = Words()
        reader.feed(text)
        lines = [" ".join(line.split()) for line in "".join(reader.parts).splitlines()]
        # Neither what was left in English nor what is on every page.
        lines = [line for line in lines if not line.isascii() and line not in seen]
        seen.update(lines)
        return "\n".join(lines)
    return text


def documents(text: str) -> Iterator[str]:
    """A text cut at ends of lines."""
    held: list[str] = []
    size = 0
    for line in text.splitlines(keepends=True):
        if size + len(line) > CHARACTERS and held:
            yield "".join(held)
            held, size = [], 0
        held.append(line[:CHARACTERS])
        size += len(held[-1])
    if size > 200:
        yield "".join(held)


def corpus(sources: list[Source], debs: Path) -> tuple[list[str], list[str]]:
    """The documents, and the packages they are from."""
    chosen: list[str] = []
    packages: list[str] = []
    for source in sources:
        deb = package_file(source.package, debs)
        packages.append(deb.name.replace("%3a", ":"))
        found = [each for text in texts(source, deb) for each in documents(text)]
        random.Random(0).shuffle(found)
        size = 0
        for document in found:
            if size >= source.bytes:
                break
            chosen.append(document)
            size += len(document.encode())
        if size < source.bytes:
            print(f"{source.package} has {size:,} bytes only, wanted {source.bytes:,.0f}")
    random.Random(1).shuffle(chosen)
    return chosen, packages


def main() -> None:
    options = parser(__doc__, devices=("cpu",))
    options.add_argument("--folder", type=Path, default=FOLDER)
    options.add_argument("--debs", type=Path, help="folder with downloaded packages")
    asked = options.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    for name, sources in CORPORA.items():
        chosen, packages = corpus(sources, asked.debs or asked.folder / "debs")
        size = sum(len(document.encode()) for document in chosen)
        text = json.dumps(chosen, ensure_ascii=False)
        facts = {
            "documents": len(chosen),
            "bytes": size,
            "sha256": hashlib.sha256(text.encode()).hexdigest(),
            "packages": packages,
        }
        (asked.folder / f"{name}.json").write_text(text, "utf-8")
        (asked.folder / f"{name}.about.json").write_text(json.dumps(facts, indent=2) + "\n")
        print(f"{name}: {len(chosen):,} documents, {size:,} bytes, sha256 {facts['sha256']}")


if __name__ == "__main__":
    main()
