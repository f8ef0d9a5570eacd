"""The page of a policy in a real browser."""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from hotgrid.train import rl
from hotgrid.train.rl.watch import Show, WatchApp

from .conftest import expect_accessible, happens, reaches, shoot


def trainer(folder: Path, steps: int, *, resume: bool = False) -> None:
    settings = rl.OffPolicy(
        copies=4, updates=1, batch=8, warmup=40, episodes=2, final_episodes=2,
        evaluate_every=40, replay=rl.Uniform(500),
    )  # fmt: skip
    made = rl.RLTrainer(
        "cartpole",
        learner=rl.DQN(hidden=(8,)),
        settings=settings,
        steps=steps,
        folder=folder,
        show=False,
    )
    made.run(resume=resume)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("rl") / "run"
    trainer(path, 120)
    return path


@pytest.fixture
def show(folder: Path) -> Iterator[Show]:
    made = Show(folder, playing=False)
    made.start()
    yield made
    made.stop()


@pytest.fixture
def page(browser: Browser, show: Show) -> Iterator[Page]:
    problems: list[str] = []
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(WatchApp(show).serve(port=0))
        context = browser.new_context(viewport={"width": 1100, "height": 720})
        stack.callback(context.close)
        page = context.new_page()
        page.set_default_timeout(60_000)
        page.on("console", lambda m: m.type == "error" and problems.append(m.text))
        page.on("pageerror", lambda e: problems.append(str(e)))
        page.goto(server.address)
        reaches(page, "window.hotgrid?.connected && window.hotgrid.frame > 0")
        yield page
    assert not problems


def drawn(page: Page) -> str:
    return page.evaluate("document.getElementById('canvas').toDataURL()")


def test_it_acts_step_by_step_and_at_its_pace(page: Page, show: Show) -> None:
    before = drawn(page)
    page.wait_for_timeout(200)
    assert drawn(page) == before
    page.keyboard.press(".")
    reaches(page, "window.hotgrid.step === 1 && window.hotgrid.frame === 2")
    assert drawn(page) != before
    assert page.locator("#total").inner_text() == "1"
    page.click("#play")
    reaches(page, "window.hotgrid.playing && window.hotgrid.episode > 1")
    shoot(page, "rl")
    page.keyboard.press("Space")
    happens(lambda: not show.playing)
    page.click("#reset")
    reaches(page, "window.hotgrid.step === 0")


def test_actions_and_speed_are_chosen_on_the_page(page: Page, show: Show) -> None:
    page.click("text=At random")
    happens(lambda: show.by == "chance")
    page.select_option("#speed", "4")
    happens(lambda: show.speed == 4.0)
    reaches(
        page, "document.querySelector('#by [aria-pressed=true]').textContent === 'At random'"
    )


def test_a_run_that_goes_on_is_followed(page: Page, folder: Path) -> None:
    before = page.evaluate("[window.hotgrid.trained, window.hotgrid.curve.length]")
    trainer(folder, 200, resume=True)
    reaches(page, f"window.hotgrid.trained > {before[0]}")
    assert page.evaluate("window.hotgrid.curve.length") > before[1]
    assert page.locator("#curve canvas").count() == 1


def test_accessible(page: Page) -> None:
    reaches(page, "document.querySelector('#curve canvas')")
    expect_accessible(page, "rl", (1100, 400), 720)


def test_a_wrong_message_is_answered(page: Page) -> None:
    for text in ('{"type": "fly"}', "[", '{"type": "speed", "factor": 1e9}'):
        answer = page.evaluate(
            """text => new Promise((done) => {
                const socket = new WebSocket(`ws://${location.host}/live`);
                socket.onopen = () => socket.send(text);
                socket.onmessage = ({data}) => {
                    const found = typeof data === "string" && JSON.parse(data);
                    if (found && found.type === "error") done(data);
                };
            })""",
            text,
        )
        assert json.loads(answer)["text"], text
