"""Makes the vocabulary that comes with hotgrid (docs/reference/vocabulary_card.md).

Takes text from packages of Debian 12 (main, so all of it is free), which it fetches with
`apt-get download` and unpacks into FOLDER; needs about 3 GB there. The same packages give the
same vocabulary, byte for byte.

    python benchmarks/make_default_vocabulary.py FOLDER           # makes and measures
    python benchmarks/make_default_vocabulary.py FOLDER --measure # measures what is there
"""

import gzip
import hashlib
import html
import re
import struct
import subprocess
import sys
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from options import parser

from hotgrid.errors import MissingPartError
from hotgrid.tokens import DEFAULT_ENCODING, get_encoding, save_tiktoken, train
from hotgrid.tokens._registry import _EMBEDDED, _embedded_file

MOST_BYTES_IN_A_TOKEN = 32
# A line of prose or code that comes again and again is a header or a licence.
MOST_EQUAL_LINES, SHORTEST_COUNTED_LINE = 3, 24
# A line with more of these is a table of numbers.
MOST_CODES = 4


def plain(data: bytes) -> str:
    return data.decode()


def without_tags(data: bytes) -> str:
    text = re.sub(r"(?s)<(script|style|head)\b.*?</\1>", "", data.decode())
    text = html.unescape(re.sub(r"<[^>]*>", "", text))
    return re.sub(r"[ \t]*\n\s*\n\s*", "\n\n", re.sub(r"[ \t]{2,}", " ", text))


def without_roff(data: bytes) -> str:
    lines = [re.sub(r"^[.']\S*\s*", "", line) for line in data.decode().splitlines()]
    text = "\n".join(line for line in lines if line and not line.startswith('\\"'))
    return re.sub(r"\\[-&|^/,]|\\f(?:\[\w*\]|\(..|.)|\\\*?\([a-z]{2}|\\s[-+]?\d", "", text)


def definitions(data: bytes) -> str:
    """A dictionary without the marks of its editors."""
    text = data.decode(errors="ignore")
    return re.sub(r"[ \t]*\[[^\]\n]{1,30}\]\n|\\[^\\\n]{1,40}\\|[{}]", "", text)


def every_second_definition(data: bytes) -> str:
    """Half of a dictionary that would outweigh everything else."""
    return "\n".join(re.split(r"\n(?=\S)", definitions(data))[::2])


def narrated(data: bytes) -> str:
    """The sentences of a game."""
    return "\n".join(re.findall(r"`\s*([^`\n]{30,}?)\s*`", data.decode()))


def originals(data: bytes) -> str:
    """The left-hand sides of a catalogue of gettext."""
    return _strings(data, 3)


def translations(data: bytes) -> str:
    """The right-hand sides of a catalogue of gettext."""
    return _strings(data, 4)


def _strings(data: bytes, table_number: int) -> str:
    header = struct.unpack_from("<5I", data)
    count, table = header[2], header[table_number]
    # The first is the catalogue's own description.
    places = (struct.unpack_from("<2I", data, table + 8 * entry) for entry in range(1, count))
    return "\n".join(data[at : at + size].decode().replace("\0", "\n") for size, at in places)


def names_of_emoji(data: bytes) -> str:
    found = re.findall(r'<annotation cp="([^"]+)"[^>]*>([^<]+)<', data.decode())
    return "\n".join(f"{emoji} {names.replace(' | ', ', ')}" for emoji, names in found)


@dataclass(frozen=True)
class Source:
    """Text of a package: which files, how they are read, how much is taken of each group."""

    package: str
    licence: str
    what: str
    files: str
    read: Callable[[bytes], str] = plain
    megabytes: float = 8.0
    group: str = ""  # of the path, by a pattern; each group has a limit in megabytes
    times: int = 1  # how much it weighs

    def texts(self, folder: Path) -> Iterator[str]:
        """What the files hold, until there is enough."""
        wanted = re.compile(self.files)
        taken: Counter[str] = Counter()
        lines: Counter[str] = Counter()
        # In an order that has nothing to do with what is inside.
        for name, data in sorted(
            self._files(folder / self.package, wanted),
            key=lambda file: hashlib.sha256(file[0].encode()).digest(),
        ):
            found = re.search(self.group, name) if self.group else None
            group = found[1] if found else ""
            if taken[group] >= self.megabytes * 1e6:
                continue
            try:
                text = self.read(data())
            except (UnicodeDecodeError, OSError):
                continue
            text = "\n".join(_kept(text.splitlines(), lines))
            taken[group] += len(text.encode())
            yield text

    @staticmethod
    def _files(
        folder: Path, wanted: re.Pattern[str]
    ) -> Iterator[tuple[str, Callable[[], bytes]]]:
        for path in folder.rglob("*"):
            name = path.relative_to(folder).as_posix()
            if not path.is_file() or path.is_symlink():
                continue
            if path.name == "src.zip":
                archive = zipfile.ZipFile(path)
                yield from (
                    (f"{name}/{each}", lambda archive=archive, each=each: archive.read(each))
                    for each in archive.namelist()
                    if wanted.search(f"{name}/{each}")
                )
            elif wanted.search(name):
                yield name, lambda path=path: _unpacked(path)


def _unpacked(path: Path) -> bytes:
    data = path.read_bytes()
    return gzip.decompress(data) if path.suffix in (".gz", ".dz") else data


def _kept(lines: list[str], seen: Counter[str]) -> Iterator[str]:
    for line in lines:
        bare = line.strip()
        if len(bare) >= SHORTEST_COUNTED_LINE:
            seen[bare] += 1
            if seen[bare] > MOST_EQUAL_LINES:
                continue
        if bare.count("0x") + bare.count("\\x") + bare.count("\\u") <= MOST_CODES:
            yield line.rstrip()


def help_of(language: str, spoken: str) -> Source:
    return Source(
        f"libreoffice-help-{language}", "MPL-2.0", spoken, r"\.html$", without_tags, 3
    )


def manual_of(language: str, spoken: str) -> Source:
    licence = "GPL-3+ and those of the originals"
    return Source(f"manpages-{language}", licence, spoken, r"/man/.*\.gz$", without_roff, 2)


CAMPAIGNS = ("dw", "ei", "httt", "low", "nr", "utbs")


def campaign(name: str) -> Source:
    where = r"locale/([\w@]+)/"
    return Source(
        f"wesnoth-1.16-{name}", "GPL-2+", "57 languages", r"\.mo$", translations, 0.2, where
    )


def campaign_in_english(name: str) -> Source:
    return Source(
        f"wesnoth-1.16-{name}", "GPL-2+", "English", r"/de/.*\.mo$", originals, times=10
    )


TRAINING = (
    Source("dict-gcide", "GPL-2+", "English", r"gcide\.dict\.dz$",
           every_second_definition),
    Source("dict-wn", "WordNet-3.0", "English", r"wn\.dict\.dz$", every_second_definition),
    Source("endless-sky-data", "GPL-3+", "English", r"/data/.*\.txt$", narrated, times=8),
    Source("dict-foldoc", "GFDL-1.1+", "English", r"foldoc\.dict\.dz$", definitions),
    Source("dict-devil", "public domain", "English", r"devil\.dict\.dz$", definitions, times=3),
    Source("jargon-text", "public domain", "English", r"jargon\.txt\.gz$", times=4),
    Source("perl-doc", "GPL-1+ or Artistic", "English, Perl", r"\.pod$", plain, 6),
    Source("postgresql-doc-15", "PostgreSQL", "English, SQL", r"\.html$", without_tags, 6),
    Source("git-doc", "GPL-2", "English", r"\.txt$", plain, 3),
    Source("developers-reference", "GPL-2+", "English", r"developers-reference\.txt",
           times=3),
    Source("gnome-user-docs", "CC-BY-SA-3.0", "English", r"/C/gnome-help/.*\.page$",
           without_tags, times=6),
    Source("gnome-user-docs", "CC-BY-SA-3.0", "40 languages", r"/help/(?!C/).*\.page$",
           without_tags, 0.4, r"help/([\w@]+)/"),
    *(campaign(name) for name in CAMPAIGNS),
    *(campaign_in_english(name) for name in CAMPAIGNS),
    Source("python3.11-doc", "PSF-2.0", "English, Python", r"_sources/.*\.txt$", plain, 12),
    Source("linux-doc-6.1", "GPL-2", "English, C", r"\.rst\.gz$", plain, 8),
    Source("manpages", "GPL-2+, BSD, others", "English", r"/man/.*\.gz$", without_roff, 4),
    help_of("en-us", "English"),
    Source("debian-handbook", "GPL-2+ or CC-BY-SA-3.0", "English", r"/html/en-US/.*\.html$",
           without_tags, times=6),
    Source("debian-handbook", "GPL-2+ or CC-BY-SA-3.0", "25 languages",
           r"/html/(?!en).*\.html$", without_tags, 0.6, r"html/([\w-]+)/"),
    Source("wesnoth-1.16-data", "GPL-2+", "57 languages", r"\.mo$", translations, 0.1,
           r"locale/([\w@]+)/"),
    Source("unicode-cldr-core", "Unicode-DFS-2016", "emoji in 100 languages",
           r"/annotations/\w+\.xml$", names_of_emoji, 1.5),
    *(
        help_of(language, spoken)
        for language, spoken in {
            "de": "German", "ru": "Russian", "zh-cn": "Chinese", "ja": "Japanese",
            "ko": "Korean", "hi": "Hindi",
        }.items()
    ),
    *(
        manual_of(language, spoken)
        for language, spoken in {
            "de": "German", "fr": "French", "es": "Spanish", "pl": "Polish",
            "pt-br": "Portuguese", "ru": "Russian",
        }.items()
    ),
    Source("manpages-ja", "those of the originals", "Japanese", r"/man/.*\.gz$", without_roff,
           2),
    Source("manpages-zh", "GFDL-1.2+, GPL-2+", "Chinese", r"zh_CN/.*\.gz$", without_roff, 2),
    Source("python3-django", "BSD-3-Clause", "Python", r"\.py$", plain, 6),
    Source("python3-twisted", "MIT", "Python", r"\.py$", plain, 4),
    Source("python3-sqlalchemy", "MIT", "Python", r"\.py$", plain, 4),
    Source("libeigen3-dev", "MPL-2.0", "C++", r"\.h$", plain, 3),
    Source("nlohmann-json3-dev", "MIT", "C++", r"\.(hpp|cpp)$", plain, 2),
    Source("gnulib", "GPL-3+, LGPL-2+", "C, shell", r"\.(c|h|sh|m4)$", plain, 6),
    Source("golang-1.19-src", "BSD-3-Clause", "Go", r"\.go$", plain, 5),
    Source("rust-src", "MIT or Apache-2.0", "Rust", r"\.rs$", plain, 5),
    Source("openjfx-source", "GPL-2 with classpath exception", "Java", r"\.java$", plain, 4),
    Source("node-typescript", "Apache-2.0", "JavaScript", r"/lib/(tsc\.js|lib\..*\.d\.ts)$",
           plain, 4),
    Source("wordpress", "GPL-2+", "PHP, JavaScript, CSS", r"(?<!\.min)\.(php|js|css)$",
           plain, 5),
    Source("libjs-bootstrap4", "MIT", "SCSS", r"\.scss$", plain, 1),
)  # fmt: skip

HELD_OUT = {
    "English prose": Source("anarchism", "GPL-2", "", r"\.md\.gz$", plain, 3),
    "Python": Source("python3-docutils", "", "", r"\.py$", plain, 2),
    **{
        spoken: Source(
            "installation-guide-amd64", "GPL-2", "", rf"/{code}/.*\.html$", without_tags
        )
        for spoken, code in {
            "German": "de", "French": "fr", "Russian": "ru", "Japanese": "ja", "Korean": "ko",
            "Chinese": "zh_CN",
        }.items()
    },
}  # fmt: skip


def fetch(folder: Path) -> dict[str, Path]:
    """Every package, unpacked in FOLDER under its name; where its file is."""
    sources = (*TRAINING, *HELD_OUT.values())
    found: dict[str, Path] = {}
    (archives := folder / "archives").mkdir(parents=True, exist_ok=True)
    for package in dict.fromkeys(source.package for source in sources):
        if not (files := list(archives.glob(f"{package}_*.deb"))):
            subprocess.run(["apt-get", "download", "-q", package], cwd=archives, check=True)
            files = list(archives.glob(f"{package}_*.deb"))
        found[package] = files[0]
        if not (folder / package).is_dir():
            subprocess.run(["dpkg-deb", "-x", files[0], folder / package], check=True)
    return found


def make(folder: Path, packages: dict[str, Path]) -> None:
    texts: list[str] = []
    for source in TRAINING:
        taken = list(source.texts(folder))
        size = sum(len(text.encode()) for text in taken)
        version = packages[source.package].name.split("_")[1].replace("%3a", ":")
        print(
            f"| {source.package} {version} | {source.licence} | {source.what} "
            f"| {size / 1e6:.1f}{f' x {source.times}' if source.times > 1 else ''} |",
            flush=True,
        )
        texts += taken * source.times
    print(f"{sum(len(text.encode()) for text in texts) / 1e6:.1f} MB", flush=True)
    pattern, specials = _EMBEDDED[DEFAULT_ENCODING]
    made = train(
        texts,
        max(specials.values()) + 1,
        pattern=pattern,
        special_tokens=list(specials),
        max_token_length=MOST_BYTES_IN_A_TOKEN,
    )
    if made._special_tokens != specials:
        sys.exit(f"the special tokens came out as {made._special_tokens}")
    file = _embedded_file(DEFAULT_ENCODING)
    ranks = folder / "ranks.tiktoken"
    save_tiktoken(made, ranks)
    data = ranks.read_bytes()
    file.write_bytes(gzip.compress(data, 9, mtime=0))
    print(f"{file.name}: {file.stat().st_size} bytes, {len(data)} unpacked")
    print(f"sha256 of the ranks: {hashlib.sha256(data).hexdigest()}")


def measure(folder: Path) -> None:
    """Bytes for each token of texts that were not learned from."""
    names = (DEFAULT_ENCODING, "gpt2", "cl100k_base", "o200k_base")
    print("| text | " + " | ".join(names) + " |")
    for title, source in HELD_OUT.items():
        texts = list(source.texts(folder))
        size = sum(len(text.encode()) for text in texts)
        cells = []
        for name in names:
            try:
                batch = get_encoding(name).encode_flat(texts, disallowed_special=())
                cells.append(f"{size / len(batch.tokens):.2f}")
            except MissingPartError:
                cells.append("absent")
        print(f"| {title}, {size / 1e6:.1f} MB | " + " | ".join(cells) + " |", flush=True)


def main() -> None:
    options = parser(__doc__, devices=("cpu",))
    options.add_argument("folder", type=Path, metavar="FOLDER")
    options.add_argument("--measure", action="store_true", help="only measure")
    given = options.parse_args()
    folder = given.folder.resolve()
    packages = fetch(folder)
    if not given.measure:
        make(folder, packages)
    measure(folder)


if __name__ == "__main__":
    main()
