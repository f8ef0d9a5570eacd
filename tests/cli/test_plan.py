"""`hotgrid plan`, in this process; nothing of the planned size is made."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import hotgrid as hg
from hotgrid.cluster.plan import Calibration, Link, ModelSpeed
from hotgrid.config import case_of
from hotgrid.errors import ArgumentError
from hotgrid.grid.run import _plan_model

from .command import run

BIG = ["plan", "karman", "--size", "131072x131072", "--devices", "64xH200"]
NVLINK = ["--link", "450GB/s,3us"]
MACHINE = Calibration("2026-01-31", "a desk", "cpu", 2, 32e9, 4e10, Link(2e9, 5e-5))


@pytest.fixture(autouse=True)
def a_cache_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def planned(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert run([*arguments, "--json"]) == 0, capsys.readouterr().err
    return json.loads(capsys.readouterr().out)


def complaint(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert run(["plan", *arguments]) == 1
    return capsys.readouterr().err


def test_a_plan_says_memory_time_mesh_and_scaling(capsys: pytest.CaptureFixture[str]):
    assert run([*BIG, *NVLINK]) == 0
    lines: dict[str, str] = {}
    for line in filter(str.strip, capsys.readouterr().out.splitlines()):
        lines.setdefault(line.split()[0], line)
    assert "H200, 141 GB, copy 4,200 GB/s" in lines["devices"]
    assert "GB of 141 GB each" in lines["memory"]
    assert "mesh 8x8, depth 2: blocks of 16384x16384" in lines["best"]
    assert "MLUPS" in lines["step"]
    assert "communication" in lines["messages"]
    assert "with mesh" in lines["overlap"]
    assert "late by 5%" in lines["simulated"]
    assert "16x4" in lines
    assert "64" in lines
    assert "*1x1" in lines["1"]


def test_the_same_as_json(capsys: pytest.CaptureFixture[str]):
    found = planned(capsys, *BIG, *NVLINK)
    best = found["best"]
    assert (best["mesh"], best["block"], best["fits"]) == ("8x8", [16384, 16384], True)
    # 9 float32 three times, and a byte of marks for the walls.
    assert best["memory_bytes"] == pytest.approx(16388**2 * (3 * 36 + 2), rel=0.01)
    assert found["best_with_overlap"]["seconds_per_step"] <= best["seconds_per_step"]
    assert [each["devices"] for each in found["strong_scaling"]] == [1, 2, 4, 8, 16, 32, 64]
    assert found["weak_scaling"][-1]["efficiency"] > 0.95
    simulated = found["simulated_seconds_per_step"]
    assert best["seconds_per_step"] < simulated["plain"]
    assert simulated["overlap"] < simulated["plain"]


def test_mesh_depth_and_types_are_taken_as_given(capsys: pytest.CaptureFixture[str]):
    fixed = planned(capsys, *BIG, *NVLINK, "--mesh", "64x1", "--depth", "8")
    assert (fixed["best"]["mesh"], fixed["best"]["depth"]) == ("64x1", 8)
    narrow = planned(capsys, *BIG, *NVLINK, "--storage", "float16")
    assert narrow["best"]["memory_bytes"] < 0.6 * fixed["best"]["memory_bytes"]


def test_packed_life_is_planned_in_words(capsys: pytest.CaptureFixture[str]):
    devices = ["--size", "65536x65536", "--devices", "4xA100", *NVLINK]
    found = planned(capsys, "plan", "life", *devices)
    best = found["best"]
    assert best["block"][0] * best["block"][1] == 65536 * 65536 // 32 // 4
    assert best["mlups"] == pytest.approx(65536**2 / best["seconds_per_step"] / 1e6)


def test_misfits_are_reported(capsys: pytest.CaptureFixture[str]):
    small = ["--size", "131072x131072", "--devices", "2x(8GB,1TB/s)", *NVLINK]
    assert run(["plan", "heat", *small]) == 0
    assert "IT DOES NOT FIT; take 29 devices or more" in capsys.readouterr().out


def test_scaling_is_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert run(["plan", "heat", "--devices", "4xH100", *NVLINK, "--plot", "s.png"]) == 0
    assert (tmp_path / "s.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "name a model"),
        (["--devices", "2xH200"], "name a model"),
        (["heat"], "name devices, such as `--devices 64xH200"),
        (["heat", "--devices", "2xH200"], "give the link between devices"),
        (["heat", "--devices", "2xH20", *NVLINK], "did you mean `2xH200`?"),
        (["heat", "--devices", "2xH200", "--link", "9gb/s,1us"], "`9GB/s` or `9Gb/s`"),
        (["heat", "--devices", "2xlocal"], "add `--calibrate`"),
        (["heat", "--check"], "`--check` needs a measured machine"),
        (["heat", "--devices", "2xH200", "--plot", "s.txt"], "must end in .png"),
        (["het", "--devices", "2xH200", *NVLINK], "did you mean `heat`"),
        (["karman", "--size", "8x8x8", "--devices", "1xH200"], "has 3"),
        (["heat", "--devices", "8xH200", *NVLINK, "--mesh", "2x2"], "needs 4 ranks, but 8"),
    ],
)
def test_mistakes_are_explained(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
):
    assert said in complaint(capsys, *arguments)


def test_one_device_needs_no_link(capsys: pytest.CaptureFixture[str]):
    found = planned(capsys, "plan", "heat", "--devices", "H200")
    assert found["best"]["messages_per_step"] == 0
    assert found["simulated_seconds_per_step"] is None


def test_calibrating_is_remembered_and_used(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(hg.cluster.plan, "calibrate", lambda: MACHINE)
    monkeypatch.setattr(_plan_model, "measured_speed", lambda *_: ModelSpeed(0.5, 1e-5))
    local = ["plan", "heat", "--size", "1024x1024", "--devices", "4xlocal"]
    first = planned(capsys, *local, "--calibrate")
    assert first["calibration"]["models"] == {
        "heat float32": {"share": 0.5, "step_overhead": 1e-5}
    }
    again = planned(capsys, *local)
    assert again["share_of_copy"] == 0.5
    assert again["link"] == {"bandwidth": 2e9, "latency": 5e-5}
    assert again["best"] == first["best"]
    # What a processor reaches is not taken for a GPU.
    assert planned(capsys, "plan", "heat", "--devices", "H200")["share_of_copy"] == 0.9
    assert run(["plan", "wave", "--calibrate"]) == 0
    assert "50% of copy" in capsys.readouterr().out
    assert set(hg.cluster.plan.load_calibration().models) == {"heat float32", "wave float32"}


def test_predictions_are_held_against_runs(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    MACHINE.with_model("heat float32", ModelSpeed(0.5, 1e-3)).save()
    asked = []

    def measured(ranks: int, module: str, arguments: list[str], timeout: float) -> str:
        asked.append((ranks, module, arguments))
        return 'a line\n{"speed": {"steps_per_second": 1000.0}}\n'

    monkeypatch.setattr(hg.cluster, "run_module", measured)
    found = planned(capsys, "plan", "heat", "--size", "4096x4096", "--check", "--depth", "4")
    assert [each["ranks"] for each in found["check"]] == [1, 2, 4]
    two = found["check"][1]
    assert two["size"] == [1024, 1024]
    assert two["error"] == pytest.approx(two["predicted_seconds_per_step"] / 1e-3 - 1)
    assert found["check"][2]["more_ranks_than_cores"]
    predicted = [each["predicted_seconds_per_step"] for each in found["check"]]
    # Four ranks on two cores: their overheads come one after the other, and nothing is won.
    assert predicted[2] >= predicted[0] + 1e-3
    arguments = asked[1][2]
    assert arguments[:4] == ["run", "heat", "--size", "1024x1024"]
    assert arguments[arguments.index("--mesh") + 1] == two["mesh"]
    assert arguments[arguments.index("--depth") + 1] == "4"
    assert run(["plan", "heat", "--check"]) == 0
    assert "more ranks than cores" in capsys.readouterr().out


def test_a_model_is_measured_on_two_grids(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(_plan_model, "_MOST_STEPS", {"small": 20, "large": 20})
    monkeypatch.setattr(_plan_model, "_LARGE_CELLS", {"cpu": 2**16})
    with hg.config.override({"compile.enabled": "off"}):
        speed = _plan_model.measured_speed(case_of("heat", {}), MACHINE)
    assert speed.share > 0
    assert speed.step_overhead >= 0


def test_grids_to_measure_keep_their_shape():
    assert _plan_model.scaled_size((131072, 65536), 2**20) == (1024, 512)
    assert _plan_model.scaled_size((64, 64), 2**20) == (1024, 1024)
    assert _plan_model.scaled_size((1, 2**22), 2**20) == (1, 2**22)


def test_a_model_with_ends_of_two_kinds_is_refused(monkeypatch: pytest.MonkeyPatch):
    class Mixed(hg.grid.Model):
        fields = (hg.grid.Field("a"), hg.grid.Field("b", boundary=0.0))

        def step(self, state, inputs, params):
            return {name: x.here for name, x in state.items()}

    monkeypatch.setattr(_plan_model, "model_of", lambda case: Mixed())
    with pytest.raises(ArgumentError, match="cannot be split"):
        _plan_model.job_of_case(case_of("mixed", {}), (8, 8), 0.9)


def test_help_imports_no_torch():
    program = (
        "import sys; from hotgrid.cli._main import run\n"
        "code = run(['plan', '--help'])\n"
        "assert 'torch' not in sys.modules\n"
        "sys.exit(code)"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "131072x131072" in done.stdout


def test_a_misspelled_model_is_named_before_devices_are_asked_for(
    capsys: pytest.CaptureFixture[str],
):
    said = complaint(capsys, "karmna")
    assert "there is no model `karmna`" in said
    assert "`karman`" in said
    assert "--devices" in complaint(capsys, "karman")
