"""Every package has a guide, a reference and tests; the menu lists every page."""

import re

import pytest

from .packages import DOCS, FOLDERS, ROOT, titled

MENU = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
PAGES = sorted(str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md"))
CODE = re.compile(r"```.*?```", re.DOTALL)
MOST_WORDS = 1400  # outside of code: what one reads in five minutes
IMAGE = re.compile(r"!\[[^]]*\]\((?!https?:)([^)\s]+)")


@pytest.mark.parametrize("package", FOLDERS)
def test_a_package_has_a_guide_and_a_reference(package: str):
    name = f"{titled(package)}.md"
    guide, reference = DOCS / "guide" / name, DOCS / "reference" / name
    assert guide.is_file(), f"write docs/guide/{name} and list it in mkdocs.yml"
    # A small package has both on one page.
    texts = [page.read_text("utf-8") for page in (guide, reference) if page.is_file()]
    assert any(f"\n::: hotgrid.{package}\n" in text for text in texts), (
        f"end docs/reference/{name} (or docs/guide/{name}) with `::: hotgrid.{package}`"
    )


@pytest.mark.parametrize("package", FOLDERS)
def test_a_package_has_tests(package: str):
    folder = ROOT / "tests" / titled(package)
    assert list(folder.rglob("test_*.py")), f"tests/{titled(package)} holds no test"


def test_the_menu_lists_every_page_once():
    listed = re.findall(r"[\w/-]+\.md", MENU.split("\nnav:\n")[1])
    assert sorted(listed) == PAGES


@pytest.mark.parametrize("page", [page for page in PAGES if page.startswith("guide/")])
def test_a_guide_page_reads_in_five_minutes(page: str):
    words = len(CODE.sub("", (DOCS / page).read_text("utf-8")).split())
    assert words <= MOST_WORDS, f"move details of docs/{page} to docs/reference: {words} words"


def test_the_home_page_links_to_every_guide_page():
    linked = set(re.findall(r"\]\((guide/\w+\.md)\)", (DOCS / "index.md").read_text("utf-8")))
    missing = {page for page in PAGES if page.startswith("guide/")} - linked
    assert not missing, f"add to `Where to go next` in docs/index.md: {sorted(missing)}"


@pytest.mark.parametrize("page", PAGES)
def test_pictures_on_a_page_exist(page: str):
    """The site builder checks links; pictures it takes on trust."""
    for picture in IMAGE.findall((DOCS / page).read_text("utf-8")):
        assert (DOCS / page).parent.joinpath(picture).is_file(), f"docs/{page} shows {picture}"
