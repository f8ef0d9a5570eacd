"""Write unicode_ranges.inc: the character classes that the lexers of tokens know.

    python native/tokens/make_unicode_ranges.py

The classes are asked of tiktoken's own regular expression engine, one code point at a
time, so that our lexers and tiktoken agree on every character of that engine's Unicode
version. It needs `pip install tiktoken` and is run only when that version moves.
"""

from itertools import groupby
from pathlib import Path

import tiktoken

VERSIONS = ("17.0", "16.0", "15.1", "15.0")
# Letters of the table, in the order of the enumeration in unicode.hpp.
CLASSES = {
    "U": r"[\p{Lu}\p{Lt}]",
    "l": r"\p{Ll}",
    "o": r"[\p{Lm}\p{Lo}]",
    "m": r"\p{M}",
    "n": r"\p{N}",
    "s": r"[\s--[\r\n]]",
    "r": r"[\r\n]",
}
EVERY_CHARACTER = "".join(
    chr(point) for point in range(0x110000) if not 0xD800 <= point < 0xE000
)


def matching(pattern: str) -> set[str]:
    """The characters that match a pattern: tiktoken drops all text that does not."""
    bytes_only = {bytes([value]): value for value in range(256)}
    encoding = tiktoken.Encoding(
        "bytes", pat_str=pattern, mergeable_ranks=bytes_only, special_tokens={}
    )
    return set(bytes(encoding.encode_ordinary(EVERY_CHARACTER)).decode())


def newest_version() -> str:
    """The newest Unicode version that the engine knows."""
    for version in VERSIONS:
        try:
            if matching(rf"\p{{Age={version}}}"):
                return version
        except ValueError:
            continue
    raise SystemExit(f"tiktoken knows none of the Unicode versions {VERSIONS}")


def ranges() -> list[tuple[int, str]]:
    """Where the class changes, from code point 0 on."""
    classes = dict.fromkeys(map(chr, range(0x110000)), ".")
    for letter, pattern in CLASSES.items():
        classes.update(dict.fromkeys(matching(pattern), letter))
    points = sorted(classes.items())
    return [(ord(next(run)[0]), letter) for letter, run in groupby(points, lambda p: p[1])]


def packed(found: list[tuple[int, str]]) -> list[str]:
    """The runs, each as its letter and its length; broken into short lines."""
    ends = [start for start, _ in found[1:]] + [0x110000]
    words = [
        f"{letter}{end - start:x}" for (start, letter), end in zip(found, ends, strict=True)
    ]
    lines, line = [], ""
    for word in words:
        if len(line) + len(word) > 110:
            lines.append(line)
            line = ""
        line += word
    return [*lines, line]


def main() -> None:
    """Write the file beside this one."""
    lines = "\n".join(f'"{line}"' for line in packed(ranges()))
    text = (
        f"// Made by make_unicode_ranges.py from tiktoken {tiktoken.__version__}; "
        f"Unicode {newest_version()}.\n"
        "// Runs of one class from code point 0 on: the letter of the class, then the\n"
        f"// length of the run in hexadecimal digits.\n{lines}\n"
    )
    Path(__file__).with_name("unicode_ranges.inc").write_text(text, encoding="ascii")


if __name__ == "__main__":
    main()
