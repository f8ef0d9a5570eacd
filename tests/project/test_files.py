"""Files are short, are named for what they hold, and are finished."""

import re

from .packages import FOLDERS, ROOT, SOURCE, tracked

CODE = {".py", ".pyi", ".c", ".cpp", ".h", ".hpp", ".cu", ".cuh", ".js", ".css", ".html"}
LONGEST = 500
# They say nothing about what is inside.
NAMELESS = {"util", "helper", "common", "misc", "support", "manager"}
# Written so that this file does not match itself.
UNFINISHED = re.compile(r"\b(?:TO[D]O|FIX[M]E)\b")


def test_no_source_file_is_too_long():
    lengths = {
        path.relative_to(ROOT): len(path.read_text("utf-8").splitlines())
        for path in tracked("src", "native")
        if path.suffix in CODE
    }
    long = {str(path): n for path, n in lengths.items() if n > LONGEST}
    assert lengths
    assert not long, f"above {LONGEST} lines, so a second idea lives there: {long}"


def test_names_say_what_is_inside():
    nameless = [
        str(path.relative_to(ROOT))
        for path in tracked("src", "native", "tests", "examples", "benchmarks")
        for part in path.relative_to(ROOT).parts
        if part.split(".")[0].strip("_").removesuffix("s") in NAMELESS
    ]
    assert not nameless, f"name these for what they hold: {nameless}"


def test_the_files_of_a_package_are_private():
    open_files = [
        str(path.relative_to(SOURCE))
        for folder in FOLDERS
        for path in (SOURCE / folder).rglob("*.py")
        if not path.name.startswith("_")
    ]
    assert not open_files, f"begin these names with an underscore: {open_files}"


def test_every_folder_with_code_in_a_package_is_a_package_itself():
    folders = {path.parent for folder in FOLDERS for path in (SOURCE / folder).rglob("*.py")}
    closed = [str(f.relative_to(SOURCE)) for f in folders if not (f / "__init__.py").is_file()]
    assert not closed, f"these folders have no `__init__.py`: {closed}"


def test_nothing_is_left_for_later():
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in tracked("src", "native", "tests", "examples", "benchmarks")
        if path.suffix in CODE
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if UNFINISHED.search(line)
    ]
    assert not found, f"finish it or open an issue: {found}"
