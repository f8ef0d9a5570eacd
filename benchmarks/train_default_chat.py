"""Train the model that comes with hotgrid: text, vocabulary, model, codes, card.

    python benchmarks/train_default_chat.py --device cuda [--debs FOLDER] [--work FOLDER]

Text is English documentation of Debian packages; the licence of each is read from its
copyright file and kept in the card. The vocabulary is small, so that the model, compressed
to int8, has at most 12 MB. The parts are kept in the work folder: text.jsonl, tokenizer.json,
the run, and default/, which is copied to src/hotgrid/chat/_default by hand. A run that was
stopped is continued by the same command.

Nothing is downloaded where FOLDER has the packages: anarchism, dict-foldoc, dict-gcide,
linux-doc-6.1, python3.11-doc, perl-doc, git-doc, harden-doc, debian-handbook.
"""

import fnmatch
import gzip
import hashlib
import html.parser
import io
import json
import re
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from make_corpora import Words, package_file
from options import parser

from hotgrid.chat import (
    LanguageModel,
    Recipe,
    RunSettings,
    TextData,
    compress_model,
    find_vocabulary,
    load_model,
    measure,
    pretrain,
    samples,
    save_model,
    text_rows,
    train_vocabulary,
)
from hotgrid.tokens import save_huggingface

MOST = 12_000_000
NOT = (
    "It was trained on a small amount of technical documentation and continues text. It does "
    "not know facts, does not answer questions, and what it writes is often wrong."
)
PROMPTS = ("The kernel", "A function that", "In this chapter", "The word")


@dataclass(frozen=True)
class Source:
    """Files of a package, and whether they are pages of HTML."""

    package: str
    files: str
    html: bool = False


SOURCES = (
    Source("anarchism", "*/markdown/*.md*"),
    Source("dict-foldoc", "*/foldoc.dict.dz"),
    Source("dict-gcide", "*/gcide.dict.dz"),
    Source("linux-doc-6.1", "*/Documentation/*.rst*"),
    Source("python3.11-doc", "*/_sources/*.txt"),
    Source("perl-doc", "*.pod"),
    Source("git-doc", "*/git-doc/*.txt"),
    Source("harden-doc", "*/html/en-US/*.html", html=True),
    Source("debian-handbook", "*/en-US/*.html", html=True),
)


def files_of(deb: Path) -> Iterator[tuple[str, bytes]]:
    """The regular files of a package, by name."""
    command = ["dpkg-deb", "--fsys-tarfile", str(deb)]
    unpacked = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    with tarfile.open(fileobj=io.BytesIO(unpacked.stdout)) as tar:
        for member in sorted(tar, key=lambda member: member.name):
            if member.isfile() and (file := tar.extractfile(member)) is not None:
                data = file.read()
                packed = member.name.endswith((".gz", ".dz"))
                yield member.name, gzip.decompress(data) if packed else data


def licences_of(copyright_file: str) -> list[str]:
    """The names of licences in a copyright file."""
    found = re.findall(r"^License: *([\w.+-]+(?: or [\w.+-]+)*)$", copyright_file, re.MULTILINE)
    known = ("GPL", "GFDL", "GNU Free Documentation", "PSF", "Artistic", "CC-BY-SA", "MIT")
    return sorted({*found, *(each for each in known if each in copyright_file)})[:12]


def plain(text: str, *, is_html: bool) -> str:
    """Text without markup and without runs of blank lines."""
    if is_html:
        reader: html.parser.HTMLParser = Words()
        reader.feed(text)
        text = "".join(reader.parts)  # pyright: ignore
    return re.sub(r"\n\s*\n\s*\n+", "\n\n", text).strip()


def write_text(place: Path, debs: Path) -> dict[str, list[str]]:
    """Write text.jsonl, and return the licences of every package."""
    licences: dict[str, list[str]] = {}
    seen: set[bytes] = set()
    with (place / "text.jsonl").open("w") as out:
        for source in SOURCES:
            deb = package_file(source.package, debs)
            name, size = deb.name.replace("%3a", ":"), 0
            licences[name] = ["see its copyright file"]
            for path, data in files_of(deb):
                if path.endswith("/copyright"):
                    licences[name] = licences_of(data.decode(errors="replace"))
                if not fnmatch.fnmatch(path, source.files):
                    continue
                # Old dictionaries have a few letters in another encoding.
                text = plain(data.decode(errors="ignore"), is_html=source.html)
                sign = hashlib.blake2b(text.encode(), digest_size=16).digest()
                if len(text) > 200 and sign not in seen:
                    seen.add(sign)
                    out.write(json.dumps({"text": text}, ensure_ascii=False) + "\n")
                    size += len(text)
            print(f"{name}: {size:,} letters, {', '.join(licences[name])}", flush=True)
    (place / "licences.json").write_text(json.dumps(licences, indent=2))
    return licences


def main() -> None:
    """Do every part that is not done."""
    options = parser(__doc__)
    options.add_argument("--work", type=Path, default=Path(".hotgrid/default-chat"))
    options.add_argument("--debs", type=Path)
    options.add_argument("--vocabulary", type=int, default=4096)
    options.add_argument("--depth", type=int, default=6)
    options.add_argument("--size", type=int, default=320)
    options.add_argument("--context", type=int, default=512)
    options.add_argument("--tokens", type=int, default=400_000_000)
    options.add_argument("--batch-tokens", type=int, default=131_072)
    asked = options.parse_args()
    place = asked.work
    place.mkdir(parents=True, exist_ok=True)
    if not (place / "licences.json").exists():
        write_text(place, asked.debs or place / "debs")
    licences = json.loads((place / "licences.json").read_text())
    data = TextData([place / "text.jsonl"], hold_out=0.01, valid_tokens=500_000)
    if not (place / "tokenizer.json").exists():
        made = train_vocabulary(data, asked.vocabulary, name="hotgrid-small")
        save_huggingface(made, place / "tokenizer.json")
    encoding = find_vocabulary(place / "tokenizer.json")
    recipe = Recipe.of(
        asked.depth,
        vocabulary=encoding.n_vocab,
        size=asked.size,
        heads=asked.size // 64,
        context=asked.context,
        tokens=asked.tokens,
        batch_tokens=asked.batch_tokens,
    )
    for row in recipe.rows():
        print("{:16} {:>16}  {}".format(*row))
    card = {"name": "hotgrid-small", "data": list(licences), "licences": licences, "not": NOT}
    gpu = asked.device == "cuda"
    run = RunSettings(
        place / "run",
        resume="auto",
        device=asked.device,
        precision="bfloat16" if gpu else "float32",
        compiled=gpu,
        average=0.999,
    )
    base = pretrain(data, encoding, recipe, run, card=card)
    finish(place, LanguageModel(base.model.cpu().float(), encoding, base.card))


def finish(place: Path, base: LanguageModel) -> None:
    """Compress, measure, write the card, and insist on the size."""
    rows = text_rows(base, [place / "text.jsonl"], most_tokens=131_072)
    small = compress_model(base, "int8", rows=rows)
    shown = [samples(small, 1, prompt=prompt, max_tokens=60)[0] for prompt in PROMPTS]
    card = {**small.card, "name": "hotgrid-small", "samples": shown}
    folder = place / "default"
    save_model(folder, LanguageModel(small.model, small.encoding, card))
    found = measure(load_model(folder), rows, folder)
    size = sum(each.stat().st_size for each in folder.iterdir())
    figures = {
        **card["figures"],
        "bits per byte, int8, on training text": found.text.bits_per_byte,
        "tokens a second here": found.tokens_per_second,
    }
    save_model(folder, LanguageModel(small.model, small.encoding, {**card, "figures": figures}))
    print(json.dumps(figures, indent=2))
    print(*shown, sep="\n---\n")
    print(f"{size:,} bytes in {folder}")
    if size > MOST:
        sys.exit(f"that is more than {MOST:,}: choose a smaller --size or --vocabulary")


if __name__ == "__main__":
    main()
