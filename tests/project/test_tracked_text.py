"""Nothing in the tree names the machine it was written on."""

import re

import pytest

from .packages import ROOT, tracked

# The bracketed letters keep this file from matching itself. `/home/me` is allowed: it
# stands for the reader's folder.
MACHINE_PATH = re.compile(r"(?<![\w.~})/-])/(?:wor[k]|roo[t]|hom[e](?!/me\b)|User[s])/\w")
PRIVATE_HOST = re.compile(
    r"https?://(?:[\w.-]+\.(?:internal|local|lan|corp|intranet)\b"
    r"|10\.\d|192\.168\.|172\.(?:1[6-9]|2\d|3[01])\.)"
)


def occurrences(pattern: re.Pattern[str]) -> list[str]:
    found: list[str] = []
    for path in tracked():
        try:
            lines = path.read_text("utf-8").splitlines()
        except UnicodeDecodeError:  # a picture
            continue
        found += [
            f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
            for number, line in enumerate(lines, 1)
            if pattern.search(line)
        ]
    return found


@pytest.mark.parametrize("pattern", [MACHINE_PATH, PRIVATE_HOST], ids=["paths", "hosts"])
def test_no_file_names_a_place_only_its_author_has(pattern: re.Pattern[str]):
    assert not (found := occurrences(pattern)), "\n".join(found)


def test_the_patterns_find_what_they_should():
    for place in ("work", "root", "home"):
        assert MACHINE_PATH.search(f"see /{place}/anna/file")
        assert not MACHINE_PATH.search(f"https://example.org/{place}/anna")
        assert not MACHINE_PATH.search(f"docs/{place}/anna")
    for host in ("pypi.internal", "10.1.2.3", "192.168.0.1:80", "172.20.0.1", "a.b.corp"):
        assert PRIVATE_HOST.search(f"http://{host}/simple")
    assert not PRIVATE_HOST.search("https://pypi.org/simple and http://localhost:8000")
