"""Links to the live page, which anyone may have written."""

from pathlib import Path

import pytest
from starlette.testclient import TestClient

from hotgrid.config import case_of
from hotgrid.grid.view import ViewApp


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
