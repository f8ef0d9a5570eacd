"""What a page is told first, also by a link that anyone may have written."""

from pathlib import Path

import pytest
from starlette.testclient import TestClient

from hotgrid.config import case_of
from hotgrid.grid.view import ViewApp
from hotgrid.grid.view._gallery import shown_models
from hotgrid.grid.view._hello import _least


def answer(app: ViewApp, link: str) -> dict[str, object]:
    """The first message to a page with this address."""
    with TestClient(app.app) as client, client.websocket_connect(link) as socket:
        return socket.receive_json()


@pytest.mark.parametrize(
    ("name", "option"),
    [
        ("life", "pattern:{file}.rle"),
        ("wireworld", "pattern:{file}.cells"),
        ("body-flow", "solid:{file}"),
        ("growing-ca", "weights:{file}"),
        ("digits-ca", "weights:{file}"),
    ],
)
def test_a_link_does_not_reach_files(tmp_path: Path, name: str, option: str):
    option = option.format(file=tmp_path / "secret")
    found = answer(ViewApp(None, tmp_path), f"/m/{name}/live?set={option}")
    assert found["type"] == "error"
    assert "a link cannot name a file" in str(found["text"])


def test_a_file_of_the_command_line_may_be_in_the_link(tmp_path: Path):
    file = tmp_path / "one.cells"
    file.write_text("OOO\n")
    case = case_of("life", {"size": "16x32", "device": "cpu", "set": {"pattern": str(file)}})
    link = f"/m/life/live?set=pattern:{file}"
    assert answer(ViewApp(case, tmp_path), link)["type"] == "hello"


def test_a_pattern_may_be_named(tmp_path: Path):
    link = "/m/life/live?size=64x64&set=pattern:glider"
    assert answer(ViewApp(None, tmp_path, device="cpu"), link)["type"] == "hello"


def test_all_models_are_listed_beside_the_one_that_was_started_for(tmp_path: Path):
    app = ViewApp(case_of("heat", {"size": "16x16", "device": "cpu"}), tmp_path)
    with TestClient(app.app) as client:
        assert client.get("/").url.path == "/m/heat"
        assert "gallery.js" in client.get("/models").text


@pytest.mark.parametrize("name", shown_models())
def test_a_slider_begins_with_a_value_that_is_allowed(name: str):
    for parameter, each in shown_models()[name]._parameters.items():
        least = _least(each)
        if least is not None:
            assert least <= each.default
            assert each.checked(parameter, least) == least
