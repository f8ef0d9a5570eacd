"""The picture in the terminal: its pixels are the cells, and the terminal is left as it was."""

import sys

import numpy as np
import pytest
import torch

from hotgrid.grid import Simulation, TerminalPicture, life, pde
from hotgrid.grid.output import Colours
from hotgrid.grid.output._reduced_view import ReducedView, fitted
from hotgrid.grid.output._terminal_picture import colour_codes, half_blocks

from .picture_models import Ramp, ramp
from .terminal_screen import Screen, Terminal, colour_256, stderr_on

GREY = (158, 158, 158)


@pytest.fixture(autouse=True)
def true_colour(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLORTERM", "truecolor")
    monkeypatch.setenv("TERM", "xterm-256color")


@pytest.mark.parametrize("rows", [2, 6, 7])
def test_blocks_are_the_levels(rows: int):
    levels = np.random.default_rng(0).integers(0, 256, (rows, 9)).astype(np.uint8)
    palette = Colours("signed", -1, 1).palette()
    lines = half_blocks(levels, colour_codes(palette, true_colour=True))
    assert len(lines) == -(-rows // 2)
    shown = Screen().feed("\r\n".join(lines))
    assert shown.pixels() == [[tuple(palette[n].tolist()) for n in row] for row in levels]
    assert shown.front is shown.back is None


def test_of_256_colours_the_nearest_is_taken():
    palette = Colours("plain", 0, 1).palette()
    codes = colour_codes(palette, true_colour=False)
    known = np.array([colour_256(n) for n in range(16, 256)])
    for colour, code in zip(palette.astype(int), codes, strict=True):
        taken = known[int(code.removeprefix("5;")) - 16]
        distances = ((known - colour) ** 2).sum(1)
        assert ((taken - colour) ** 2).sum() == distances.min()


def test_the_shape_of_the_grid_is_kept():
    assert fitted((10, 20), 44, 80) == (10, 20, 4)
    assert fitted((400, 1600), 44, 80) == (20, 80, 1)
    assert fitted((1000, 10), 44, 80) == (44, 1, 1)
    assert fitted((1, 10_000), 44, 80) == (1, 80, 1)


def test_pixels_are_means_and_only_they_leave_the_device(monkeypatch: pytest.MonkeyPatch):
    sim = Simulation(pde.Heat(), size=(64, 96), compiled=False, device="cpu")
    u = torch.rand(64, 96)
    sim.state = {"u": u}
    looked = ReducedView(sim)
    copied = []
    cpu = torch.Tensor.cpu
    monkeypatch.setattr(torch.Tensor, "cpu", lambda x: (copied.append(x.numel()), cpu(x))[1])
    image = looked.image(16, 30)
    assert image.shape == (16, 24)
    assert copied == [16 * 24]
    means = u.reshape(16, 4, 24, 4).mean((1, 3)).numpy()
    share = (means - means.min()) / (means.max() - means.min())
    assert np.abs(image - 254 * share).max() <= 1.01


def test_solid_cells_are_grey_and_do_not_count():
    image = ReducedView(ramp((12, 16)), "u").image(6, 8)
    assert image.shape == (6, 8)
    assert (image[:, :2] == 255).all()
    assert (image[:, 2] == 0).all(), "the first that is not solid is the least"
    assert (image[:, -1] == 254).all()


def test_living_cells_are_black_and_few_of_them_are_seen():
    sim = Simulation(life.Life(), size=(64, 64), compiled=False, device="cpu")
    cells = torch.zeros(64, 64)
    cells[5, 7] = 1
    sim.state = {next(iter(sim.state)): cells}
    looked = ReducedView(sim)
    image = looked.image(32, 32)
    assert looked.colours.kind == "states"
    assert (image > 0).sum() == 1
    assert image[2, 3] == 254


def test_the_first_row_of_a_flow_is_at_the_bottom():
    class Flow(Ramp):
        y_up = True

        def initial(self, size, generator):
            u = torch.arange(float(size[0]))[:, None].expand(size)
            return super().initial(size, generator) | {"u": u.clone()}

    sim = Simulation(Flow(), size=(6, 8), compiled=False, device="cpu")
    column = ReducedView(sim, "u").image(6, 8)[:, -1].tolist()
    assert column == sorted(column, reverse=True)


def test_three_dims_are_the_middle_slice_and_one_is_a_curve():
    assert ReducedView(ramp((4, 6, 8)), "u").image(6, 8).shape == (6, 8)
    image = ReducedView(ramp((8,)), "u").image(20, 40)
    assert image.shape == (13, 40)
    heights = (image != 255).sum(0).tolist()
    assert heights[:10] == [0] * 10
    assert heights == sorted(heights)
    assert heights[-1] == 13


def drawn(terminal: Terminal, monkeypatch: pytest.MonkeyPatch, sim: Simulation, steps: int):
    with stderr_on(terminal, monkeypatch), TerminalPicture(sim, "u", steps):
        sim.run(steps, progress=False)


def test_a_run_is_drawn_in_place(monkeypatch: pytest.MonkeyPatch):
    terminal, sim = Terminal(12, 40), ramp()
    drawn(terminal, monkeypatch, sim, 200)
    shown = Screen().feed(terminal.close())
    assert shown.frames >= 2
    assert shown.cursor_shown
    assert sim._callbacks == []
    pixels = shown.pixels()
    assert (len(pixels), len(pixels[0])) == (12, 16)
    looked = ReducedView(sim, "u")
    levels = looked.image(12, 16)
    palette = [tuple(colour) for colour in looked.colours.palette().tolist()]
    assert pixels == [[palette[n] for n in row] for row in levels]
    assert pixels[0][0] == GREY
    status = shown.text(6)
    assert status.startswith("Ramp: u  step 200 of 200  time 100")
    assert (shown.row, shown.column) == (7, 0), "the cursor is below the picture"


def test_256_colours_where_the_terminal_does_not_say_more(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("COLORTERM")
    terminal = Terminal(12, 40)
    drawn(terminal, monkeypatch, ramp(), 2)
    text = terminal.close()
    assert "38;2;" not in text
    known = {colour_256(n) for n in range(16, 256)}
    assert {colour for row in Screen().feed(text).pixels() for colour in row} <= known


def test_it_follows_the_size_of_the_terminal(monkeypatch: pytest.MonkeyPatch):
    terminal, sim = Terminal(12, 120), ramp((48, 64))
    with stderr_on(terminal, monkeypatch), TerminalPicture(sim) as picture:
        terminal.resize(26, 120)
        picture.draw()
        terminal.resize(6, 30)
        picture.draw()
    text = terminal.close()
    sizes = []
    for part in text.split("\x1b[2J"):
        pixels = Screen().feed(part).pixels()
        sizes.append((len(pixels), len(pixels[0])))
    assert sizes == [(20, 27), (48, 64), (8, 11)]


def test_what_is_written_meanwhile_stands_above(monkeypatch: pytest.MonkeyPatch):
    terminal, sim = Terminal(12, 40), ramp()
    with stderr_on(terminal, monkeypatch), TerminalPicture(sim):
        print("mind the gap", file=sys.stderr)
    shown = Screen().feed(terminal.close())
    assert shown.text(0) == "mind the gap"
    assert shown.text(1) == "▀" * 16


@pytest.mark.parametrize("problem", [KeyboardInterrupt, ValueError])
def test_the_terminal_is_left_as_it_was(problem, monkeypatch: pytest.MonkeyPatch):
    terminal, sim = Terminal(12, 40), ramp()

    def fail(simulation: Simulation) -> None:
        raise problem

    sim.every(3, fail)
    with stderr_on(terminal, monkeypatch):
        before = sys.stderr
        with pytest.raises(problem), TerminalPicture(sim):
            sim.run(10, progress=False)
        assert sys.stderr is before
    shown = Screen().feed(terminal.close())
    assert shown.cursor_shown
    assert shown.front is shown.back is None
    assert shown.column == 0
    assert [callback for _, callback in sim._callbacks] == [fail]


def test_an_interrupt_in_the_first_picture_leaves_the_terminal_as_it_was(
    monkeypatch: pytest.MonkeyPatch,
):
    terminal, sim = Terminal(12, 40), ramp()
    with stderr_on(terminal, monkeypatch):
        picture = TerminalPicture(sim)
        stream = picture._stream

        def write(text: str) -> int:
            vars(stream).pop("write")
            stream.write(text[:200])
            raise KeyboardInterrupt

        vars(stream)["write"] = write
        with pytest.raises(KeyboardInterrupt), picture:
            pass
    shown = Screen().feed(terminal.close())
    assert shown.cursor_shown and shown.column == 0
    assert shown.front is shown.back is None


def test_a_run_outlives_its_terminal(monkeypatch: pytest.MonkeyPatch):
    terminal, sim = Terminal(12, 40), ramp()
    with stderr_on(terminal, monkeypatch), TerminalPicture(sim) as picture:
        picture._stream = Gone()
        sim.run(20, progress=False)
        picture.draw()
    terminal.close()
    assert sim.step_count == 20


class Gone:
    def fileno(self) -> int:
        raise OSError(5, "Input/output error")

    write = flush = lambda *_: Gone.fileno(None)


def test_frames_are_at_least_a_tenth_of_a_second_apart(monkeypatch: pytest.MonkeyPatch):
    clock = [0.0]
    monkeypatch.setattr("time.perf_counter", lambda: clock[0])
    terminal, sim = Terminal(12, 40), ramp()
    frames = []
    with stderr_on(terminal, monkeypatch):
        picture = TerminalPicture(sim)
        draw = picture.draw
        monkeypatch.setattr(picture, "draw", lambda: (frames.append(clock[0]), draw()))
        with picture:
            for _ in range(4000):
                clock[0] += 0.001
                sim.step_count += 1
                for period, callback in list(sim._callbacks):
                    if sim.step_count % period == 0:
                        callback(sim)
    terminal.close()
    gaps = np.diff(frames[:-1])
    assert (gaps >= 0.0999).all()
    assert gaps[1:].max() < 0.2
    assert len(frames) > 20
