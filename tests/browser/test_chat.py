"""The chat page in a real browser."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from hotgrid.chat import Engine, LanguageModel
from hotgrid.chat.serve import ChatApp

from ..chat.tiny import scripted_language  # noqa: TID252  tests are not a package
from .conftest import expect_accessible, reaches, shoot

EVIL = "<img src=x onerror='window.hacked = 1'>"
WORDS = ("Hello", ", ", "w\u00f6rld", "! ", EVIL, "\n```py\n", "x = 1 < 2", "\n```\n", "Done.")


@pytest.fixture
def opened(browser: Browser) -> Iterator[Callable[..., Page]]:
    problems: list[str] = []
    with contextlib.ExitStack() as stack:

        def open_page(language: LanguageModel, key: str | None = None, **context: Any) -> Page:
            engine = stack.enter_context(Engine(language, slots=2))
            server = stack.enter_context(ChatApp(engine, key).serve(port=0))
            made = browser.new_context(
                **{"viewport": {"width": 1000, "height": 700}, **context}
            )
            stack.callback(made.close)
            page = made.new_page()
            page.set_default_timeout(60_000)
            page.on("console", lambda m: m.type == "error" and problems.append(m.text))
            page.on("pageerror", lambda e: problems.append(str(e)))
            page.on("request", lambda r: server.address in r.url or problems.append(r.url))
            page.goto(server.address)
            reaches(page, "window.hotgrid?.ready")
            return page

        yield open_page
    # The browser reports answers that are errors; the tests want them.
    assert not [each for each in problems if "the server responded with" not in each]


def say(page: Page, text: str, replies: int = 1) -> None:
    page.fill("#text", text)
    page.keyboard.press("Enter")
    reaches(page, f"window.hotgrid.replies === {replies}")


def test_a_conversation_is_shown_as_text_and_never_as_markup(opened) -> None:
    page = opened(scripted_language(*WORDS))
    say(page, "<b>Hi</b>")
    shown = page.locator(".message")
    assert shown.count() == 2
    assert shown.nth(0).locator(".body").inner_text() == "<b>Hi</b>"
    body = shown.nth(1).locator(".body")
    assert "Hello, w\u00f6rld! " + EVIL in body.inner_text()
    assert body.locator("pre").inner_text() == "x = 1 < 2"
    assert page.locator("#messages img, #messages b").count() == 0
    assert page.evaluate("window.hacked") is None
    shoot(page, "chat")
    say(page, "More", 2)
    assert page.locator(".message").count() == 4


def test_what_is_sent_holds_settings_system_prompt_and_conversation(opened) -> None:
    page = opened(scripted_language("Yes"))
    sent: list[Any] = []
    page.on("request", lambda r: r.method == "POST" and sent.append(r.post_data_json))
    page.keyboard.press("Alt+s")
    page.fill("dialog textarea", "Be brief.")
    page.fill("[name=temperature]", "0.3")
    page.fill("[name=top_k]", "7")
    page.fill("[name=seed]", "5")
    page.keyboard.press("Escape")
    say(page, "One")
    say(page, "Two", 2)
    roles = [(each["role"], each["content"]) for each in sent[1]["messages"]]
    assert roles == [
        ("system", "Be brief."),
        ("user", "One"),
        ("assistant", "Yes"),
        ("user", "Two"),
    ]
    chosen = {name: sent[1][name] for name in ("temperature", "top_k", "seed", "stream")}
    assert chosen == {"temperature": 0.3, "top_k": 7, "seed": 5, "stream": True}
    page.reload()
    reaches(page, "window.hotgrid?.ready")
    assert page.input_value("dialog textarea") == "Be brief."
    assert page.input_value("[name=seed]") == "5"


@pytest.mark.parametrize("way", ["button", "key"])
def test_stop_keeps_what_was_said(opened, way: str) -> None:
    page = opened(scripted_language("la ", "lo ", endless=True, context=200_000))
    page.keyboard.press("Alt+s")
    page.fill("[name=max_tokens]", "100000")
    page.keyboard.press("Escape")
    page.fill("#text", "Sing")
    page.keyboard.press("Enter")
    reaches(page, "document.querySelector('.assistant .body').textContent.length > 30")
    if way == "button":
        page.click("#stop")
    else:
        page.keyboard.press("Escape")
    reaches(page, "window.hotgrid.replies === 1")
    said = page.locator(".assistant .body").inner_text()
    assert said.startswith("la lo la")
    assert "Stopped." in page.locator(".assistant .foot").inner_text()
    assert page.locator("#send").is_visible()
    page.wait_for_timeout(200)
    assert page.locator(".assistant .body").inner_text() == said


def test_new_chat_forgets_and_copy_copies(opened) -> None:
    page = opened(scripted_language("Yes"), permissions=["clipboard-read", "clipboard-write"])
    say(page, "One")
    page.locator(".assistant").get_by_role("button", name="Copy").click()
    reaches(page, "document.querySelector('.notice')")
    assert page.evaluate("navigator.clipboard.readText()") == "Yes"
    page.keyboard.press("Alt+n")
    assert page.locator(".message").count() == 0
    sent: list[Any] = []
    page.on("request", lambda r: r.method == "POST" and sent.append(r.post_data_json))
    say(page, "Two", 2)
    assert [each["content"] for each in sent[0]["messages"]] == ["Two"]


def test_an_error_is_said_and_the_message_comes_back(opened) -> None:
    page = opened(scripted_language("Yes", context=64))
    page.fill("#text", "x" * 100)
    page.keyboard.press("Enter")
    reaches(page, "document.querySelector('.notice-error')")
    assert "at most 63" in page.locator(".notice-error").inner_text()
    assert page.input_value("#text") == "x" * 100


def test_lines_and_empty_messages(opened) -> None:
    page = opened(scripted_language("Yes"))
    page.keyboard.press("Enter")
    page.keyboard.type("a")
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("b")
    page.keyboard.press("Enter")
    reaches(page, "window.hotgrid.replies === 1")
    assert page.locator(".user .body").inner_text() == "a\nb"
    assert page.locator(".message").count() == 2


def test_the_page_asks_for_the_key(opened) -> None:
    page = opened(scripted_language("Yes"), key="secret")
    reaches(page, "document.querySelector('#panel').open")
    page.fill("[name=key]", "secret")
    page.keyboard.press("Tab")
    reaches(page, "document.querySelector('#model').textContent === 'scripted'")
    page.keyboard.press("Escape")
    say(page, "Hi")
    assert page.locator(".assistant .body").inner_text() == "Yes"


def test_axe_finds_nothing_and_nothing_is_cut(opened) -> None:
    page = opened(scripted_language(*WORDS))
    say(page, "Hi")
    for step in ("page", "settings"):
        expect_accessible(page, f"chat-{step}", (360, 1000), 700)
        page.keyboard.press("Alt+s")


def test_theme_is_toggled(opened) -> None:
    page = opened(scripted_language("Yes"), color_scheme="light")
    before = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.click("#theme")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != before
