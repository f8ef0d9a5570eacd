"""A real Chromium, and pages of simulations that run in this process."""

import contextlib
import itertools
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from hotgrid.config import case_of, override
from hotgrid.grid.view import Session, ViewApp
from hotgrid.web import PageServer

NAMES = ("chromium", "chromium-browser", "google-chrome")
AXE = Path(__file__).with_name("axe-4.14.0") / "axe.min.js"
RULES = ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa"]
SHOTS = Path(__file__).parents[2] / ".hotgrid" / "screenshots"


# Not for the session: Playwright keeps an event loop running in this thread.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    found = next(filter(None, map(shutil.which, NAMES)), None)
    assert found, "these tests need Chromium; `make browser` installs it where it can"
    with sync_playwright() as playwright:
        arguments = ["--enable-unsafe-swiftshader", "--disable-background-networking"]
        browser = playwright.chromium.launch(executable_path=found, args=arguments)
        yield browser
        browser.close()


class Shown:
    """A running model, its server and its pages."""

    def __init__(self, browser: Browser, app: ViewApp, server: PageServer) -> None:
        self._browser = browser
        self.app, self.server = app, server
        self.problems: list[str] = []
        self._contexts: list[Any] = []

    @property
    def session(self) -> Session:
        return next(iter(self.app._sessions.values()))

    def page(self, path: str = "/", **context: Any) -> Page:
        """Open a page, and wait until it has drawn a frame."""
        opened = self._browser.new_context(
            **{"viewport": {"width": 1280, "height": 800}, **context}
        )
        self._contexts.append(opened)
        page = opened.new_page()
        page.set_default_timeout(60_000)
        page.on("console", lambda m: m.type == "error" and self.problems.append(m.text))
        page.on("pageerror", lambda e: self.problems.append(str(e)))
        join = "&" if "?" in path else "?"
        page.goto(f"http://127.0.0.1:{self.server.port}{path}{join}token={self.server.token}")
        if path != "/" or self.app._case is not None:
            reaches(page, "window.hotgrid?.connected && window.hotgrid.frame > 0")
        return page

    def close(self) -> None:
        for each in self._contexts:
            each.close()


@pytest.fixture
def show(browser: Browser, tmp_path: Path) -> Iterator[Callable[..., Shown]]:
    with contextlib.ExitStack() as opened:
        opened.enter_context(override({"compile.enabled": "off"}))

        def make(model: str | None, *, playing: bool = False, **told: Any) -> Shown:
            case = None if model is None else case_of(model, {"device": "cpu", **told})
            app = ViewApp(case, tmp_path / "saved", playing=playing)
            server = app.serve(0)
            app.begin()
            opened.enter_context(server)
            shown = Shown(browser, app, server)
            opened.callback(lambda: shown.problems and pytest.fail(str(shown.problems)))
            opened.callback(shown.close)
            return shown

        yield make


def reaches(page: Page, condition: str, seconds: float = 60.0) -> None:
    """Wait until something holds in a page.

    Playwright's own way evaluates text inside of the page, which its policy forbids.
    """
    until = time.monotonic() + seconds
    while not page.evaluate(f"Boolean({condition})"):
        assert time.monotonic() < until, condition
        page.wait_for_timeout(30)


def happens(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    """Wait until something holds in the process of the server."""
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)


def shoot(page: Page, name: str) -> None:
    """Keep a picture of a page for people to look at."""
    SHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SHOTS / f"{name}.png")


def violations(page: Page) -> list[tuple[str, list[str]]]:
    """The rules of axe that a page breaks, each with the elements that do."""
    # Not as a script of the page, whose policy forbids it.
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate(f"axe.run(document, {{runOnly: {RULES}}})")
    return [(v["id"], [n["html"][:120] for n in v["nodes"]]) for v in found["violations"]]


def expect_accessible(page: Page, name: str, widths: tuple[int, int], height: int) -> None:
    """Look at a page in both colour schemes at two widths; shots are called `name-...`."""
    for scheme, width in itertools.product(("light", "dark"), widths):
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")  # type: ignore[arg-type]
        page.set_viewport_size({"width": width, "height": height})
        reaches(page, f"document.documentElement.scrollWidth <= {width}")
        assert violations(page) == []
        shoot(page, f"{name}-{scheme}-{width}")
