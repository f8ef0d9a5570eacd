"""The page of a sphere in a real browser."""

import contextlib
import json
import math
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from hotgrid.blt import (
    Branch,
    IngestSettings,
    Sidecar,
    Sphere,
    Trunk,
    ingest,
    place_corpus,
)
from hotgrid.blt.view import SphereApp
from hotgrid.web import PageServer

from .conftest import expect_accessible, reaches, shoot

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The guides of hotgrid in patches, some of its code, and a text in each polar zone."""
    path = tmp_path_factory.mktemp("sphere") / "corpus"
    guides = [str(each) for each in sorted((ROOT / "docs/guide").glob("*.md"))[:4]]
    code = str(ROOT / "src/hotgrid/blt/_sphere/_zones.py")
    texts = ["Answer in one sentence. " * 8, "Q: What is a patch? A: Some bytes. " * 8]
    settings = IngestSettings(segmenter="space", leaves="patches")
    ingest([*guides, code], path, settings, texts=texts, progress=False)
    place_corpus(path, zones=["instruction=text:0", "qa=text:1"], shells=64, progress=False)
    return path


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[PageServer]:
    with SphereApp(Sphere(folder)).serve(port=0) as running:
        yield running


@contextlib.contextmanager
def opened(browser: Browser, server: PageServer, **how) -> Iterator[Page]:
    problems: list[str] = []
    context = browser.new_context(**{"viewport": {"width": 1200, "height": 760}, **how})
    try:
        page = context.new_page()
        page.set_default_timeout(60_000)
        page.on("console", lambda m: m.type == "error" and problems.append(m.text))
        page.on("pageerror", lambda e: problems.append(str(e)))
        page.goto(server.address)
        reaches(page, "window.hotgrid?.ready && window.hotgrid.frames > 0")
        yield page
    finally:
        context.close()
    assert not problems


@pytest.fixture
def page(browser: Browser, server: PageServer) -> Iterator[Page]:
    with opened(browser, server) as page:
        yield page


def drawn(page: Page) -> bytes:
    before = page.evaluate("window.hotgrid.frames")
    page.evaluate("document.getElementById('canvas').dispatchEvent(new Event('redraw'))")
    reaches(page, f"window.hotgrid.frames > {before}")
    return page.locator("#canvas").screenshot()


def test_it_turns_by_mouse_wheel_and_keys(page: Page) -> None:
    first = drawn(page)
    view = (
        "[window.hotgrid.orbit.turn, window.hotgrid.orbit.tilt, window.hotgrid.orbit.distance]"
    )
    home = page.evaluate(view)
    box = page.locator("#canvas").bounding_box()
    assert box
    page.mouse.move(box["x"] + 200, box["y"] + 200)
    page.mouse.down()
    page.mouse.move(box["x"] + 320, box["y"] + 240)
    page.mouse.up()
    turned = drawn(page)
    assert turned != first
    page.mouse.wheel(0, -300)
    reaches(page, f"window.hotgrid.orbit.distance < {home[2]}")
    page.focus("#canvas")
    before = page.evaluate("window.hotgrid.orbit.turn")
    page.keyboard.press("ArrowLeft")
    assert page.evaluate("window.hotgrid.orbit.turn") != before
    page.keyboard.press("0")
    assert page.evaluate(view) == home


def test_colours_have_a_legend(page: Page) -> None:
    pictures = {"Zone": drawn(page)}
    said = page.locator("#legend").inner_text().replace("\u2009", "").split("\n")
    zones = dict(zip(said[::2], map(int, said[1::2]), strict=True))
    assert list(zones) == ["Instructions", "Content", "Questions and answers"]
    assert min(zones.values()) > 10
    for name in ("Shell", "Entropy", "Density", "Kind"):
        page.click(f"#colour >> text={name}")
        pictures[name] = drawn(page)
    assert len(set(pictures.values())) == 5
    assert "Code" in page.locator("#legend").inner_text()
    page.click("#colour >> text=Shell")
    assert page.locator("#legend .ends").inner_text().split() == ["0", "63"]


def test_a_point_under_the_pointer_shows_its_text(page: Page, folder: Path) -> None:
    with contextlib.closing(sqlite3.connect(folder / "corpus.db")) as database:
        known = database.execute("SELECT count(*) FROM places").fetchone()[0]
    assert page.evaluate("window.hotgrid.points") == known
    box = page.locator("#canvas").bounding_box()
    assert box
    x, y = page.evaluate(
        """() => {
            const {orbit, cloud} = window.hotgrid;
            const canvas = document.getElementById("canvas");
            for (let y = 100; y < canvas.clientHeight; y += 7)
                for (let x = 100; x < canvas.clientWidth; x += 7)
                    if (cloud.pick(orbit, x, y, 3) >= 0) return [x, y];
        }"""
    )
    page.mouse.move(box["x"] + x, box["y"] + y)
    reaches(page, "!document.getElementById('tip').hidden")
    assert page.locator("#tip p").inner_text().strip() == (
        page.evaluate("window.hotgrid.tip").strip()
    )
    page.mouse.down()
    page.mouse.up()
    reaches(page, "window.hotgrid.chosen !== null")
    facts = page.locator("#chosen-facts").inner_text()
    assert re.search(r"Document\s+\S+\.md|text:", facts)


def test_a_search_lights_the_cone(page: Page, folder: Path) -> None:
    everything = drawn(page)
    page.fill("#text", "the number of bytes")
    page.press("#text", "Enter")
    reaches(page, "window.hotgrid.marked > 0")
    sphere = Sphere(folder)
    wanted, _ = sphere.cone(sphere.direction_of("the number of bytes"), math.radians(15))
    assert page.evaluate("window.hotgrid.marked") == len(wanted)
    assert page.locator("#hits li").count() == min(20, len(wanted))
    assert drawn(page) != everything
    shoot(page, "sphere")
    page.locator("#hits button").first.click()
    reaches(page, "window.hotgrid.chosen !== null")
    assert page.evaluate("window.hotgrid.chosen") == int(sphere.nodes[wanted[0]])
    page.click("#around")
    reaches(page, "document.querySelector('#hits span').textContent === '0.0°'")
    page.click("#clear")
    assert page.evaluate("window.hotgrid.marked") == 0
    page.keyboard.press("Escape")


def test_edges_come_and_go(page: Page) -> None:
    without = drawn(page)
    page.check("#edges-next")
    reaches(page, "window.hotgrid.edges > 1000")
    assert drawn(page) != without
    page.uncheck("#edges-next")
    assert drawn(page) == without
    assert page.locator("#edges-same_source").is_disabled()


def test_fingers_turn_and_zoom(browser: Browser, server: PageServer) -> None:
    phone = {"viewport": {"width": 400, "height": 760}, "has_touch": True}
    with opened(browser, server, **phone) as page:
        before = page.evaluate("[window.hotgrid.orbit.turn, window.hotgrid.orbit.distance]")
        touch = page.context.new_cdp_session(page)

        def fingers(kind: str, *places: tuple[int, int]) -> None:
            points = [{"x": x, "y": y, "id": at} for at, (x, y) in enumerate(places)]
            touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

        fingers("touchStart", (150, 250))
        fingers("touchMove", (210, 250))
        fingers("touchEnd")
        reaches(page, f"window.hotgrid.orbit.turn !== {before[0]}")
        fingers("touchStart", (150, 250), (250, 250))
        fingers("touchMove", (120, 250), (280, 250))
        fingers("touchEnd")
        reaches(page, f"window.hotgrid.orbit.distance < {before[1]}")


@pytest.mark.long
def test_a_hundred_thousand_points(browser: Browser, tmp_path: Path) -> None:
    with Sidecar(tmp_path / "large.db") as sidecar:
        sidecar.add(Trunk("0" * 64, 400_000, [Branch("text", "text")]))
    with contextlib.closing(sqlite3.connect(tmp_path / "large.db")) as database, database:
        database.executemany(
            "INSERT INTO nodes VALUES (?, 'leaf', 2, ?, NULL, 0, 4, 1.0, ?)",
            [
                (n, f"patch_{n}", json.dumps({"mean_entropy": (n * 7919 % 1000) / 250}))
                for n in range(3, 100_003)
            ],
        )
        edges = range(10, 100_009)
        database.executemany("INSERT INTO edges VALUES (?, 'next', 1.0)", [(n,) for n in edges])
        database.executemany(
            "INSERT INTO incidence VALUES (?, ?, ?)",
            [(n, n - 7 + position, position) for n in edges for position in (0, 1)],
        )
    assert place_corpus(tmp_path / "large.db", progress=False).by == "order"
    app = SphereApp(Sphere(tmp_path / "large.db"))
    with app.serve(port=0) as server, opened(browser, server) as page:
        assert page.evaluate("window.hotgrid.points") == 100_000
        assert page.locator("#text").is_disabled()
        page.click("#colour >> text=Entropy")
        first = drawn(page)
        page.focus("#canvas")
        page.keyboard.press("ArrowRight")
        assert drawn(page) != first
        page.check("#edges-next")
        reaches(page, "window.hotgrid.edges === 99999")
        drawn(page)
        shoot(page, "sphere-100000")
        page.locator("#canvas").click()
        reaches(page, "window.hotgrid.chosen !== null")
        assert page.locator("#chosen-facts").inner_text().count("patch_") == 1
    fewer = SphereApp(Sphere(tmp_path / "large.db"), most=1000)
    with fewer.serve(port=0) as server, opened(browser, server) as page:
        assert page.evaluate("window.hotgrid.points") == 1000
        assert "1 000 of 100 000" in page.locator(".notice").inner_text().replace("\u2009", " ")


def test_accessible(page: Page) -> None:
    page.fill("#text", "a grid")
    page.press("#text", "Enter")
    reaches(page, "window.hotgrid.marked > 0")
    page.locator("#hits button").first.click()
    reaches(page, "window.hotgrid.chosen !== null")
    expect_accessible(page, "sphere", (1200, 400), 760)


WRONG = {
    "/cone?angle=15": "must not be empty",
    "/cone?text=a&angle=400": "0 to 180 degrees",
    "/cone?text=a&angle=x": "0 to 180 degrees",
    "/cone?node=1": "has no place",
    "/cone?node=-3": "whole number",
    "/node/1": "has no place",
    "/edges/contains": "no kind of edge",
}


def test_a_wrong_request_is_answered(page: Page) -> None:
    for path, said in WRONG.items():
        answer = page.request.get(f"{page.url.split('?')[0].rstrip('/')}{path}")
        assert answer.status == 400, path
        assert said in answer.json()["error"], path
