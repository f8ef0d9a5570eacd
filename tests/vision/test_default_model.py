"""The image model that comes with hotgrid."""

import json
import sys

import pytest
from PIL import Image, ImageDraw

from hotgrid.cli import main
from hotgrid.vision import load_image_model

CLASSES = "airplane automobile bird cat deer dog frog horse ship truck"


def drawn_ship() -> Image.Image:
    """A hull, a cabin and a mast between sky and water."""
    picture = Image.new("RGB", (320, 320), (150, 190, 230))
    draw = ImageDraw.Draw(picture)
    draw.rectangle((0, 200, 320, 320), fill=(40, 80, 120))
    draw.polygon([(40, 180), (280, 180), (240, 230), (80, 230)], fill=(60, 40, 40))
    draw.rectangle((110, 140, 210, 180), fill=(240, 240, 240))
    draw.rectangle((155, 60, 162, 140), fill=(30, 30, 30))
    return picture


def test_it_is_small_and_says_what_it_is():
    found = load_image_model()
    assert found.path is not None
    assert sum(file.stat().st_size for file in found.path.iterdir()) < 5_000_000
    assert found.classes == tuple(CLASSES.split())
    assert found.card["figures"]["accuracy"] > 0.9
    assert "CIFAR-10" in found.card["data"] and "ten classes" in found.card["about"]


def test_it_names_a_drawing(tmp_path, capsys, monkeypatch):
    file = str(tmp_path / "ship.png")
    drawn_ship().save(file)
    heard: list[str] = []
    for more in (["--top", "10", "--json"], []):
        monkeypatch.setattr(sys, "argv", ["hotgrid", "vision", "predict", file, *more])
        with pytest.raises(SystemExit):
            main()
        heard.append(capsys.readouterr().out)
    shares = json.loads(heard[0])[file]
    assert max(shares, key=shares.__getitem__) == "ship"
    assert sum(shares.values()) == pytest.approx(1)
    assert f"knows only: {', '.join(CLASSES.split())}" in heard[1]
