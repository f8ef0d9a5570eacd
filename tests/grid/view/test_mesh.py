"""The live page of a grid over a mesh: the same as of one rank, cell by cell."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from websockets.sync.client import connect

from hotgrid.cluster import Communicator, run_ranks
from hotgrid.config import Case, case_of, override
from hotgrid.grid import Field, Model, Simulation, lbm, life, neural, pde
from hotgrid.grid.model import view
from hotgrid.grid.view import Eye, Gaze, LiveRun, Session

from .test_look import WHOLE, parsed
from .test_session import Desk, Page


class Wide(Model):
    """A model whose view looks far: every cell against the mean of all."""

    fields = (Field("u"),)

    def step(self, state: Any, inputs: Any, params: Any) -> Any:
        return {"u": state["u"][0, 1]}

    def initial(self, size: tuple[int, ...], generator: torch.Generator) -> dict[str, Any]:
        return {"u": torch.rand(size, generator=generator)}

    @view
    def above(self, state: Any) -> torch.Tensor:
        """Above the mean."""
        return state["u"] - state["u"].mean()


MODELS = {
    "heat": (pde.Heat, (21, 34), "u"),
    "line": (lambda: pde.Heat(rate=0.1), (45,), "u"),
    "packed": (life.Life, (24, 128), "alive"),
    "cells": (life.Life3D, (9, 10, 11), "alive"),
    "karman": (lbm.Karman, (48, 144), "vorticity"),
    "shear": (lbm.DoubleShear, (32, 32), "vorticity"),
    "coloured": (neural.GrowingCA, (48, 52), "colour"),
    "wide": (Wide, (12, 16), "above"),
}
LOOKS = [
    {},
    {"pixels": (7, 9)},
    {"region": (3.0, 5.0, 18.0, 30.0), "pixels": (4, 4)},
    {"pixels": (9, 9), "axis": 1, "slice": 7},
    {"volume": True},
    {"arrows": 6},
]


@pytest.mark.parametrize("name", MODELS)
def test_a_frame_of_a_mesh_is_that_of_one_rank(name: str):
    make, size, seen = MODELS[name]
    mesh = "2" if len(size) == 1 else "2x1" if name == "packed" else "1x2"

    def frames(communicator: Communicator | None) -> list[Any]:
        cut = {} if communicator is None else {"mesh": mesh, "communicator": communicator}
        sim = Simulation(make(), size, seed=3, device="cpu", compiled=False, **cut)
        sim.run(4, progress=False)
        eye = Eye(sim)
        found: list[Any] = []
        for told in LOOKS:
            frame = eye.frame(Gaze(seen, **{"region": WHOLE, **told}))
            found.append(frame and parsed(frame.packed(1, 1, 255)))
        return [*found, eye.value(Gaze(seen, WHOLE, slice=5), (2, 3))]

    alone = frames(None)
    first, other = run_ranks(2, frames)
    assert other == [None] * len(alone)
    for mine, theirs in zip(alone[:-1], first[:-1], strict=True):
        for key in ("kind", "colours", "region", "step"):
            assert mine[key] == theirs[key], key
        assert mine["low"] == pytest.approx(theirs["low"], rel=1e-5, abs=1e-9)
        apart = np.abs(mine["values"].astype(int) - theirs["values"].astype(int))
        # A pixel whose cells are on two ranks is added up in another order.
        assert apart.max() <= 1, (name, apart.max())
        assert (
            np.abs(mine["arrows"].astype(int) - theirs["arrows"].astype(int)).max(initial=0)
            <= 1
        )
    assert alone[-1] == pytest.approx(first[-1], abs=1e-9)


class Ranks:
    """A session on two ranks, driven from the first."""

    def __init__(self, case: Case, folder: Path) -> None:
        self._case, self._folder = case, folder

    def run(self, orders: Any) -> list[Any]:
        def body(communicator: Communicator) -> Any:
            with override({"compile.enabled": "off"}):
                from hotgrid.grid.run._perform import _prepared

                sim = _prepared(self._case, communicator, resume=False)
            live = LiveRun(self._case.model, sim, self._case, self._folder)
            if communicator.rank:
                live.follow()
                return live.simulation._form.own()
            desk = object.__new__(Desk)
            desk.sim, desk.session = sim, Session(live, playing=False).start()
            desk.page, desk._id = Page(1), 0
            desk.session.join(desk.page)  # pyright: ignore[reportArgumentType]
            orders(desk)
            desk.session.stop()
            return sim._form.own(), desk.page

        return run_ranks(2, body, timeout=60)


@pytest.mark.parametrize("name", ["karman", "life"])
def test_orders_have_the_same_effect_on_every_rank(name: str, tmp_path: Path):
    brush = "solid" if name == "karman" else "cells"
    size = "48x128"

    def orders(desk: Desk) -> None:
        ask = desk.ask
        # Odd numbers: margins are used up in the middle of an exchange.
        ask("step", count=3)
        desk.stopped_at(3)
        points = [[17.5, 40.5], [19.5, 60.5]]
        ask("stroke", stroke=1, brush=brush, value=1, radius=2.5, points=points)
        ask("step", count=2)
        desk.stopped_at(5)
        if name == "karman":
            ask("set", name="reynolds", value=90)
            ask("stroke", stroke=2, brush="density", value=1.05, radius=3, points=[[4, 80]])
        else:
            ask("stamp", rle="bob$2bo$3o!", at=[16, 46])
        ask("save", what="checkpoint", name="half")
        ask("step", count=2)
        desk.stopped_at(7)
        ask("stroke", stroke=3, brush=brush, value=1, radius=4, points=[[18, 20]])
        ask("undo")
        assert ask("set", name="nothing", value=1)["type"] == "error"
        assert ask("load", name="none")["type"] == "error"
        ask("step", count=4)
        desk.stopped_at(11)
        ask("load", name="half")
        assert ask("value", at=[3, 70])["type"] == "value"
        ask("step", count=3)
        desk.stopped_at(8)
        desk.until(lambda: parsed(desk.page.frames[-1])["step"] == 8)

    told = {"size": size, "device": "cpu"}
    alone = Desk(name, tmp_path / "one", **told)
    orders(alone)
    alone.session.stop()
    case = case_of(name, {**told, "mesh": "2x1", "depth": 2})
    (own, page), other = Ranks(case, tmp_path / "two").run(orders)
    for field, whole in alone.sim._form.own().items():
        assert torch.equal(torch.cat([own[field], other[field]], -2), whole)
    mine, theirs = (parsed(each.frames[-1]) for each in (alone.page, page))
    assert np.array_equal(mine["values"], theirs["values"])
    assert page.of("status")[-1]["parameters"] == alone.page.of("status")[-1]["parameters"]


@pytest.mark.long
def test_the_command_starts_the_ranks_and_ends_them(tmp_path: Path):
    command = [
        sys.executable,
        "-m",
        "hotgrid",
        "view",
        "heat",
        "--size",
        "16x16",
        "--mesh",
        "2",
    ]
    command += [
        "--no-open",
        "--port",
        "0",
        "--device",
        "cpu",
        "--paused",
        "--out",
        str(tmp_path),
    ]
    quiet = {**os.environ, "HOTGRID_COMPILE_ENABLED": "off"}
    running = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=quiet)
    try:
        assert running.stdout is not None
        line = running.stdout.readline()
        port, token = re.search(r":(\d+)/\?token=(\S+)", line).groups()  # pyright: ignore
        address = f"ws://127.0.0.1:{port}/m/heat/live?token={token}"
        with connect(address, compression=None, max_size=None) as socket:
            socket.send('{"type":"step","count":3}')
            until = time.monotonic() + 120
            while time.monotonic() < until:
                data = socket.recv(120)
                if isinstance(data, str):
                    continue
                frame = parsed(data)
                socket.send(json.dumps({"type": "ack", "frame": frame["number"]}))
                if frame["step"] == 3:
                    break
            else:
                raise AssertionError("three steps were not shown")
        running.send_signal(signal.SIGINT)
        assert running.wait(60) == 130
    finally:
        running.kill()
        running.communicate()
