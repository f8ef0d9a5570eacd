"""The training of digits: its steps are those of the engine, its data are digits."""

import importlib
from argparse import Namespace
from pathlib import Path

import pytest
import torch
from torch.nn import functional

from hotgrid.grid import rollout
from hotgrid.grid.neural import CellNetwork, DigitsCA
from hotgrid.grid.neural._drawn_digits import drawn_digit


@pytest.fixture
def script(scripts):
    return importlib.import_module("train_digits_ca")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """IDX files of drawn 0 and 1 on 28 x 28 pixels."""
    draw = torch.Generator().manual_seed(0)
    for part, count in (("train", 60), ("t10k", 20)):
        digits = torch.stack([drawn_digit(i % 2, draw) for i in range(count)])
        pixels = functional.interpolate(digits[:, None], size=28, mode="bilinear")[:, 0]
        head = b"\0\0\x08\x03" + b"".join(n.to_bytes(4, "big") for n in (count, 28, 28))
        data = (255 * pixels).to(torch.uint8).numpy().tobytes()
        (tmp_path / f"{part}-images-idx3-ubyte").write_bytes(head + data)
        labels = b"\0\0\x08\x01" + count.to_bytes(4, "big") + bytes(i % 2 for i in range(count))
        (tmp_path / f"{part}-labels-idx1-ubyte").write_bytes(labels)
    return tmp_path


def test_steps_of_ink_have_the_states_and_gradients_of_a_rollout(script):
    network = CellNetwork.random(20, 8, script.FILTERS, scale=0.3)
    network.output[0] = 0.0
    weights = [x.requires_grad_() for x in network.tensors().values()]
    ink = torch.stack([drawn_digit(i) for i in (2, 8)])
    cells = ink[:, None] * torch.randn(20, *ink.shape[1:], generator=torch.manual_seed(0))
    cells[:, 0] = ink
    living = script.Living(ink)
    *_, flat = living.steps(network, living.taken(cells), 5)
    model = DigitsCA().with_network(network)
    expected = rollout(model, {"cells": cells}, 5, batch=2)["cells"]
    torch.testing.assert_close(living.put(flat), expected.detach())
    votes = living.taken(expected)[:, -10:], flat[:, -10:]
    slopes = [torch.autograd.grad(x.square().sum(), weights) for x in votes]
    for a, b in zip(*slopes, strict=True):
        torch.testing.assert_close(a[1:], b[1:], rtol=1e-3, atol=1e-4)


def test_a_training_comes_down_and_its_network_can_be_read(script, folder: Path):
    out = folder / "digits.safetensors"
    script.begun(out, CellNetwork.random(14, 12, script.FILTERS))
    network = DigitsCA(str(out)).network
    given = Namespace(device="cpu", out=out, batch=8, pool=16, steps=8, rate=1e-2)
    given.iterations, given.minutes = 120, 5
    digits = script.Digits(folder, "cpu", drawn=2)
    torch.manual_seed(0)
    assert script.train(network, digits, given).count == 120
    ink, labels = digits.draw(40)
    living = script.Living(ink)
    with torch.no_grad():
        flat = living.after(network, script.fresh(ink, 14), 8)
    # With one half for each of the two it is 0.05.
    wanted = functional.one_hot(labels, 10)[living.run]
    assert (flat[:, -10:] - wanted).square().mean() < 0.045
    assert torch.equal(DigitsCA(str(out)).network.hidden, network.hidden.detach())
    with torch.no_grad():
        row = script.score(network, *script.mnist(folder, "t10k", "cpu"), tests=20)
    assert row["tests"] == 20
    assert 0 <= row["after 40"] <= 1
    assert 0.1 <= row["after 40, agree"] <= 1


def test_pictures_are_reduced_to_the_ink_they_were_drawn_with(script, folder: Path):
    pictures, labels = script.mnist(folder, "t10k", "cpu")
    assert labels.tolist() == [i % 2 for i in range(20)]
    same = torch.eye(2, 3).expand(20, 2, 3)
    ink = script.reduced(pictures, same, 0.5, 0.5)
    draw = torch.Generator().manual_seed(0)
    drawn = [drawn_digit(i % 2, draw) for i in range(80)][60:]
    both, either = (
        (op(ink > 0, torch.stack(drawn) > 0)).sum()
        for op in (torch.logical_and, torch.logical_or)
    )
    assert ink.unique().tolist() == [0.0, 1.0]
    assert both / either > 0.8


def test_votes_of_a_digit_are_counted(script):
    ink = torch.stack([drawn_digit(1), drawn_digit(7)])
    living = script.Living(ink)
    flat = torch.zeros(len(living.run), 12)
    flat[torch.arange(len(flat)), 2 + torch.where(living.run == 0, 4, 9)] = 1.0
    flat[0, 2:] = torch.eye(10)[3]
    votes = living.votes(flat)
    assert votes[0, 4] == ink[0].sum() - 1
    assert votes[0, 3] == 1
    assert votes[1, 9] == ink[1].sum()
    assert living.right(flat, torch.tensor([4, 0])).tolist() == [1.0, 0.0]
