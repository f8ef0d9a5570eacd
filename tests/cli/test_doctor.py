import errno
import json
import os
import subprocess
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import SimpleNamespace

import pytest

from hotgrid import _native, config
from hotgrid.cli.doctor import _command as _doctor, _machine_probes
from hotgrid.cli.doctor._diagnosis import diagnose, guarded
from hotgrid.cli.doctor._finding import Finding, State
from hotgrid.cli.doctor._machine_probes import (
    compile_problem,
    compiler,
    native_core,
    parts,
    processor_in,
)
from hotgrid.cli.doctor._settings_probes import caches, settings
from hotgrid.cli.doctor._torch_probes import (
    TORCH_RANGE,
    bandwidth,
    devices,
    torch_build,
    version_finding,
)

from .command import run

SECTIONS = ["hotgrid", "machine", "torch", "devices", "compiler", "native core", "bandwidth"]
SECTIONS += ["caches", "config", "parts"]


def report(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict]:
    code = run([*arguments, "doctor", "--quick", "--json"])
    return code, json.loads(capsys.readouterr().out)


def pretend(monkeypatch: pytest.MonkeyPatch, *findings: Finding) -> None:
    monkeypatch.setattr(_doctor, "diagnose", lambda **_: list(findings))


def test_json_has_the_documented_structure(capsys: pytest.CaptureFixture[str]):
    code, found = report(capsys)
    assert set(found) == {"ok", "findings"}
    assert code == (0 if found["ok"] else 1)
    for finding in found["findings"]:
        assert set(finding) == {"section", "name", "value", "state", "detail", "way_out"}
        assert all(isinstance(text, str) for text in finding.values())
        assert finding["state"] in ("ok", "note", "broken")
        assert finding["state"] == "ok" or finding["way_out"]
    places = [(finding["section"], finding["name"]) for finding in found["findings"]]
    assert len(set(places)) == len(places)


def test_a_broken_setting_is_found_and_exit_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    (tmp_path / "hotgrid.toml").write_text('[logging]\nlevel = "lowd"\n')
    code, found = report(capsys)
    assert (code, found["ok"]) == (1, False)
    [broken] = [finding for finding in found["findings"] if finding["state"] == "broken"]
    assert (broken["section"], broken["name"]) == ("config", "settings")
    assert "hotgrid.toml" in broken["detail"]
    assert "hotgrid config check" in broken["way_out"]


def test_every_section_is_announced_and_in_order(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("hotgrid.cli.doctor._diagnosis.bandwidth", lambda: iter(()))
    monkeypatch.setattr("hotgrid.cli.doctor._diagnosis.compiler", lambda: iter(()))
    announced: list[str] = []
    findings = diagnose(starting=announced.append)
    assert announced == SECTIONS
    order = [SECTIONS.index(finding.section) for finding in findings]
    assert order == sorted(order)


def test_quick_leaves_out_the_bandwidth_alone(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("hotgrid.cli.doctor._diagnosis.compiler", lambda: iter(()))
    announced: list[str] = []
    diagnose(quick=True, starting=announced.append)
    assert announced == [section for section in SECTIONS if section != "bandwidth"]


def test_a_failing_probe_is_one_more_finding():
    def probe():
        yield Finding("devices", "cpu", "fine")
        raise OSError("the bus is gone")

    first, second = guarded("devices", probe)
    assert first.state == "ok"
    assert (second.section, second.state) == ("devices", "broken")
    assert second.detail == "OSError: the bus is gone"


@pytest.mark.parametrize(
    ("state", "code", "verdict"),
    [("ok", 0, "Nothing"), ("note", 0, "Nothing"), ("broken", 1, "Something")],
)
def test_only_what_is_broken_gives_exit_1(
    state: State,
    code: int,
    verdict: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    pretend(monkeypatch, Finding("torch", "version", "9", state, "too new", "go back"))
    assert run(["doctor"]) == code
    assert f"{verdict} is broken" in capsys.readouterr().out


def test_a_pipe_gets_plain_lines_without_blanks_at_the_end(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.delenv("COLUMNS")
    path = "/a/" + "long/" * 60
    pretend(
        monkeypatch,
        Finding("caches", "global", path, detail="[bold]not markup[/bold]"),
        Finding("caches", "compile", "x", "note", "nothing is kept", "set compile.cache"),
    )
    run(["doctor"])
    lines = capsys.readouterr().out.splitlines()
    assert f"  ok      global         {path}  [bold]not markup[/bold]" in lines
    assert "to do: set compile.cache" in [line.strip() for line in lines]
    assert lines == [line.rstrip() for line in lines]
    assert "\x1b" not in "".join(lines)


def test_columns_hold_for_a_pipe_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("COLUMNS", "60")
    pretend(monkeypatch, Finding("caches", "global", "word " * 40, detail="more " * 40))
    run(["doctor"])
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) in range(50, 61)


def test_flags_show_as_origin_of_their_value(capsys: pytest.CaptureFixture[str]):
    _, found = report(capsys, "-c", "memory.limit=0.25")
    [limit] = [finding for finding in found["findings"] if finding["name"] == "memory.limit"]
    assert (limit["value"], limit["detail"]) == ("0.25", "-c memory.limit")


@pytest.mark.parametrize("version", ["2.11.0", "2.12.1+cu128", "2.13.0+cpu", "2.13.0a0+git1"])
def test_torch_inside_the_range_is_fine(version: str):
    assert version_finding(version) == Finding("torch", "version", version)


@pytest.mark.parametrize("version", ["1.13.1", "2.10.0", "2.14.0", "3.0.0"])
def test_torch_outside_the_range_is_broken(version: str):
    found = version_finding(version)
    assert found.state == "broken"
    assert found.way_out == f'pip install "torch{TORCH_RANGE}"'


def test_the_range_is_the_one_of_the_package():
    project = Path(__file__).parents[2] / "pyproject.toml"
    assert f'"torch{TORCH_RANGE}"' in project.read_text()


def test_torch_that_does_not_import_is_reported_once(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    [found] = torch_build()
    assert (found.state, found.value) == ("broken", "does not import")
    assert [*devices(), *bandwidth()] == []


def fake_numpy(folder: Path, text: str) -> dict[str, str]:
    (folder / "numpy").mkdir(parents=True)
    (folder / "numpy" / "__init__.py").write_text(text)
    return {**os.environ, "PYTHONPATH": str(folder)}


@pytest.mark.parametrize(
    "text", ["__version__ = '1.13'", "raise ImportError('for Python 3.9')"]
)
def test_a_numpy_that_hides_the_right_one_is_named(tmp_path: Path, text: str):
    environment = fake_numpy(tmp_path / "old", text)
    run_in = lambda program: subprocess.run(
        [sys.executable, "-c", program],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    done = run_in(
        "from hotgrid.cli.doctor._torch_probes import torch_build\n"
        "[found] = torch_build(); print(found.detail, found.way_out, sep='|')"
    )
    detail, way_out = done.stdout.strip().split("|")
    cause = f"PYTHONPATH names `{tmp_path / 'old'}`, so numpy comes from there"
    assert detail.endswith(cause)
    assert way_out == f"unset PYTHONPATH, or take `{tmp_path / 'old'}` out of it"
    done = run_in("import sys; sys.argv[1:] = ['models']; from hotgrid.cli import main; main()")
    assert done.returncode == 1
    assert cause in done.stderr
    assert "Traceback" not in done.stderr


def test_a_full_disk_is_not_taken_for_a_missing_compiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    fake = tmp_path / "c++"
    fake.write_text("#!/bin/sh\necho 'fatal error: x.s: No space left on device' >&2; exit 1\n")
    fake.chmod(0o755)
    monkeypatch.setenv("CXX", str(fake))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    way_out = f"free space in `{tmp_path}`, or set TMPDIR to a folder on another disk"
    assert [found.way_out for found in compiler()] == [way_out]

    def full(*arguments: object, **options: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_text", full)
    assert [found.way_out for found in compiler()] == [way_out]


def test_bandwidth_shows_figure_and_method(monkeypatch: pytest.MonkeyPatch):
    import hotgrid.kernels

    def measured(device: str) -> hotgrid.kernels.Bandwidth:
        return hotgrid.kernels.Bandwidth(device=device, bytes_per_second=2e10, method="torch")

    monkeypatch.setattr(hotgrid.kernels, "copy_bandwidth", measured)
    found = next(bandwidth())
    assert (found.name, found.value) == ("cpu", "20.0 GB/s")
    assert found.detail.endswith("measured with torch")


def test_a_device_that_cannot_be_measured_does_not_hide_the_next(
    monkeypatch: pytest.MonkeyPatch,
):
    import torch

    import hotgrid.kernels

    def measured(device: str) -> hotgrid.kernels.Bandwidth:
        if device == "cpu":
            raise RuntimeError("no thread could be started")
        return hotgrid.kernels.Bandwidth(device=device, bytes_per_second=2e10, method="torch")

    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(hotgrid.kernels, "copy_bandwidth", measured)
    cpu, gpu = bandwidth()
    assert (cpu.name, cpu.state) == ("cpu", "broken")
    assert cpu.detail == "RuntimeError: no thread could be started"
    assert (gpu.name, gpu.state) == ("cuda:0", "ok")


def test_a_missing_compiler_is_a_note_with_its_cost(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CXX", "no-such-compiler")
    [found] = compiler()
    assert found.state == "note"
    assert "no-such-compiler" in found.value
    assert "slower" in found.detail


def test_a_compiler_of_several_words_is_none_for_inductor(monkeypatch: pytest.MonkeyPatch):
    from torch._inductor.cpp_builder import cpp_compiler_search
    from torch._inductor.exc import InvalidCxxCompiler

    with pytest.raises(InvalidCxxCompiler):
        cpp_compiler_search(("env g++",))
    monkeypatch.setenv("CXX", "env g++")
    [found] = compiler()
    assert (found.state, found.value) == ("note", "env g++ does not work")
    assert found.detail.startswith("torch.compile takes CXX as one program")
    assert found.way_out == "set CXX to the compiler alone, such as g++"


@pytest.mark.parametrize(
    ("cpuinfo", "name"),
    [
        ("processor\t: 0\nmodel name\t: Xeon(R) @ 2.1GHz: big\n", "Xeon(R) @ 2.1GHz: big"),
        ("CPU implementer\t: 0x41\nCPU part\t: 0xd0c\n", "Neoverse-N1"),
        ("CPU implementer : 0x99\nCPU part : 0x1\n", "ARM, implementer 0x99, part 0x1"),
        ("processor\t: 0\n", None),
        ("", None),
    ],
)
def test_the_processor_has_a_name_on_arm_too(cpuinfo: str, name: str | None):
    assert processor_in(cpuinfo) == name


def test_the_first_error_of_a_compiler_is_reported(tmp_path: Path):
    fake = tmp_path / "c++"
    fake.write_text(
        "#!/bin/sh\necho 'x.cpp: fatal error: Python.h: no such file' >&2; exit 1\n"
    )
    fake.chmod(0o755)
    assert compile_problem(str(fake)) == "x.cpp: fatal error: Python.h: no such file"


@pytest.mark.parametrize(
    ("reason", "spec", "state"),
    [
        ("it is not built here; run `pip install .`", None, "note"),
        ("HOTGRID_NATIVE=off switches it off; unset it", ModuleSpec("core", None), "note"),
        ("it does not load (bad symbol); rebuild it", ModuleSpec("core", None), "broken"),
    ],
)
def test_an_absent_core_is_a_note_and_one_that_fails_is_broken(
    reason: str, spec: ModuleSpec | None, state: State, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(_native, "missing", lambda: reason)
    monkeypatch.setattr(_machine_probes.importlib.util, "find_spec", lambda name: spec)
    [found] = native_core()
    assert found.state == state
    assert found.detail.startswith(reason.partition(";")[0])
    assert found.way_out == reason.partition("; ")[2]


def test_a_core_that_works_shows_its_instructions(monkeypatch: pytest.MonkeyPatch):
    core = SimpleNamespace(
        cpu_features=lambda: {"avx2": True, "avx512": False},
        isa=lambda: "avx2",
        threads=lambda: 4,
    )
    monkeypatch.setattr(_native, "missing", lambda: None)
    monkeypatch.setattr(_native, "core", lambda: core)
    instructions, threads = native_core()
    assert (instructions.value, instructions.detail) == ("avx2", "the processor has avx2")
    assert threads.value == "4"


@pytest.mark.parametrize(
    ("variable", "value", "noted"),
    [
        ("HOTGRID_NATIVE", "maybe", True),
        ("HOTGRID_NATIVE", "on", False),
        ("HOTGRID_THREADS", "abc", True),
        ("HOTGRID_THREADS", "5000", True),
        ("HOTGRID_THREADS", "3", False),
        ("HOTGRID_ISA", "mmx", True),
        ("HOTGRID_ISA", "scalar", False),
    ],
)
def test_a_variable_that_the_core_does_not_understand_is_noted(
    variable: str, value: str, noted: bool, monkeypatch: pytest.MonkeyPatch
):
    core = SimpleNamespace(cpu_features=dict, isa=lambda: "scalar", threads=lambda: 4)
    monkeypatch.setattr(_native, "missing", lambda: None)
    monkeypatch.setattr(_native, "core", lambda: core)
    monkeypatch.setenv(variable, value)
    found = [(each.name, each.value) for each in native_core() if each.state == "note"]
    assert found == ([(variable, value)] if noted else [])


def test_a_core_switched_off_is_not_noted_twice(monkeypatch: pytest.MonkeyPatch):
    why = "HOTGRID_NATIVE=No switches it off; unset it"
    monkeypatch.setattr(_native, "missing", lambda: why)
    monkeypatch.setenv("HOTGRID_NATIVE", "No")
    assert [each.name for each in native_core()] == ["core"]


def test_one_odd_cache_does_not_hide_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def closed(place: object, name: str) -> Path:
        if name == "compile":
            raise PermissionError(13, "Permission denied", "/closed")
        return tmp_path / name

    # What other tests have compiled is large, and its size is looked up.
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "kept"))
    monkeypatch.setattr(config, "cache_folder", closed)
    found = {finding.name: finding for finding in caches()}
    assert list(found) == ["torch.compile", "global", "compile", "autotune"]
    assert (found["compile"].state, found["compile"].value) == ("broken", "check failed")
    assert found["autotune"].state == "ok"


def test_a_cache_below_a_closed_folder_names_that_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def access(path: Path, mode: int) -> bool:
        if mode == os.F_OK:
            return path == tmp_path or path in tmp_path.parents
        return path != tmp_path

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(os, "access", access)
    found = {finding.name: finding for finding in caches()}
    assert found["global"].state == "broken"
    assert found["global"].detail.startswith(f"{tmp_path} is not a folder that this user")


def test_a_cache_that_cannot_be_written_is_broken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    found = {finding.name: finding for finding in caches()}
    assert found["global"].state == "broken"
    assert "XDG_CACHE_HOME" in found["global"].way_out
    assert found["torch.compile"].state == "ok"


def test_a_cache_shows_its_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "kept"))
    assert next(caches()).detail == "not made yet"
    (tmp_path / "kept/deep").mkdir(parents=True)
    (tmp_path / "kept/deep/kernel.so").write_bytes(bytes(2_500_000))
    assert next(caches()).detail == "2.5 MB, 1 file"


def test_the_folder_of_inductor_is_the_one_torch_uses(monkeypatch: pytest.MonkeyPatch):
    from torch._inductor.runtime.cache_dir_utils import default_cache_dir

    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR", raising=False)
    assert next(caches()).value == default_cache_dir()


def test_a_cache_switched_off_is_fine(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOTGRID_AUTOTUNE_CACHE", "none")
    found = {finding.name: finding for finding in caches()}
    assert found["autotune"] == Finding("caches", "autotune", "none; nothing is kept")


def test_every_setting_shows_where_it_came_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    file = tmp_path / "hotgrid.toml"
    file.write_text('\n[autotune]\nlevel = "full"\n')
    monkeypatch.setenv("HOTGRID_MEMORY_LIMIT", "0.5")
    found = {finding.name: (finding.value, finding.detail) for finding in settings()}
    assert found["file"] == (str(file), "")
    assert found["autotune.level"] == ("full", f"{file}:3")
    assert found["memory.limit"] == ("0.5", "HOTGRID_MEMORY_LIMIT")
    assert found["logging.targets"] == ('["stderr"]', "default")


def test_a_missing_part_is_a_note_that_says_what_for(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(_machine_probes, "installed_version", lambda part: None)
    found = {finding.name: finding for finding in parts()}
    assert found["matplotlib"].state == "note"
    assert found["matplotlib"].detail == "needed for pictures"
    assert found["matplotlib"].way_out == "pip install matplotlib"


def test_a_cache_that_cannot_be_made_is_broken(monkeypatch: pytest.MonkeyPatch):
    """/proc looks writable to root, but no folder can be made there."""
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", "/proc")
    found = {each.name: each for each in caches()}["global"]
    assert found.state == "broken"
    assert "/proc" in found.detail and "XDG_CACHE_HOME" in found.way_out
