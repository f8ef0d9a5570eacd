"""Pictures of the gallery."""

import time

import pytest

from hotgrid.errors import ArgumentError
from hotgrid.grid.run import models
from hotgrid.grid.view import _gallery
from hotgrid.grid.view._gallery import SHIPPED, Thumbnails, listed, thumbnail

PNG = b"\x89PNG\r\n\x1a\n"


def test_pictures_that_ship_are_those_of_models():
    shipped = {each.stem: each.read_bytes() for each in SHIPPED.glob("*.png")}
    assert shipped.keys() <= models().keys()
    assert all(each.startswith(PNG) for each in shipped.values())
    # An empty picture takes fewer bytes.
    assert min(map(len, shipped.values())) > 200


def test_a_model_without_a_picture_gets_one(monkeypatch: pytest.MonkeyPatch, tmp_path):
    monkeypatch.setattr(_gallery, "SHIPPED", tmp_path)
    (tmp_path / "life.png").write_bytes(b"shipped")

    def computed(name: str, ended: object) -> bytes:
        if name == "heat":
            raise ArgumentError("too small")
        return name.encode()

    monkeypatch.setattr(_gallery, "thumbnail", computed)
    made = Thumbnails()
    made.start()
    names, end = {each["name"] for each in listed()["models"]}, time.monotonic() + 60
    while any(made.get(name) is None for name in names) and time.monotonic() < end:
        time.sleep(0.01)
    made.stop()
    others = {"life": b"shipped", "heat": b""}
    assert all(made.get(name) == others.get(name, name.encode()) for name in names)


@pytest.mark.parametrize("name", ["heat", "life-3d", "karman"])
def test_a_picture_is_computed(name: str):
    first, later = (thumbnail(name, seconds=seconds) for seconds in (0.0, 0.3))
    assert first.startswith(PNG)
    assert first != later
