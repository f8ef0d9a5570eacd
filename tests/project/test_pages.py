"""Every room has a page and tests, and every page can be reached."""

import re

import pytest

from .packages import DOCS, FOLDERS, ROOT, titled

MENU = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
PAGES = sorted(str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md"))
IMAGE = re.compile(r"!\[[^]]*\]\((?!https?:)([^)\s]+)")


@pytest.mark.parametrize("room", FOLDERS)
def test_a_room_has_a_page_with_its_reference(room: str):
    page = DOCS / f"{titled(room)}.md"
    assert page.is_file(), f"write docs/{page.name} and list it in mkdocs.yml"
    assert f"\n::: hotgrid.{room}\n" in page.read_text("utf-8"), (
        f"end docs/{page.name} with a heading `## Reference` and `::: hotgrid.{room}`"
    )


@pytest.mark.parametrize("room", FOLDERS)
def test_a_room_has_tests(room: str):
    folder = ROOT / "tests" / titled(room)
    assert list(folder.rglob("test_*.py")), f"tests/{titled(room)} holds no test"


def test_the_menu_lists_every_page_once():
    listed = re.findall(r"[\w/-]+\.md", MENU.split("\nnav:\n")[1])
    assert sorted(listed) == PAGES


@pytest.mark.parametrize("page", PAGES)
def test_pictures_on_a_page_exist(page: str):
    """The site builder checks links; pictures it takes on trust."""
    for picture in IMAGE.findall((DOCS / page).read_text("utf-8")):
        assert (DOCS / page).parent.joinpath(picture).is_file(), f"docs/{page} shows {picture}"
