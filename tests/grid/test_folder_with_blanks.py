"""torch.compile works if torch, its cache or a project is in a folder with blanks."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch.utils import cpp_extension

from hotgrid.grid.forms._form import _cause as cause
from hotgrid.kernels._compiler_paths import quote_torch_folder, without_blanks

PROGRAM = """
import torch
import hotgrid as hg
from hotgrid.kernels import capture

assert " " in torch.__file__, torch.__file__
model, start = hg.pde.Heat(), {"u": torch.rand(8, 8)}
if not hg.Simulation(model, size=(8, 8), state=start, form="roll").run(2, progress=False).steps:
    raise SystemExit("nothing ran")
print(capture(lambda x: 2 * x + 1)(torch.ones(3)).tolist())
"""


@pytest.mark.long
@pytest.mark.compiles
def test_steps_and_captured_functions_are_compiled(tmp_path):
    folder = tmp_path / "my grüne project"
    folder.mkdir()
    # Python does not resolve links of what it imports, so torch lies in this folder now.
    (folder / "packages").symlink_to(Path(torch.__file__).parents[1])
    environment = {
        **os.environ,
        "PYTHONPATH": str(folder / "packages"),
        "TORCHINDUCTOR_CACHE_DIR": str(folder / "compiled"),
        "HOTGRID_COMPILE_ENABLED": "on",
    }
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "[3.0, 3.0, 3.0]" in done.stdout
    assert "uncompiled" not in done.stderr
    assert list((folder / "compiled").rglob("*.so"))


def test_the_folder_of_torch_is_quoted_once(monkeypatch):
    monkeypatch.setattr(torch, "__path__", ["/my grüne project/torch"])
    monkeypatch.setattr(cpp_extension, "TORCH_LIB_PATH", "/my grüne project/torch/lib")
    for _ in range(2):
        quote_torch_folder()
        options = shlex.split(f"-L{cpp_extension.TORCH_LIB_PATH}")
        assert options == ["-L/my grüne project/torch/lib"]


def test_a_link_stands_for_a_folder_with_blanks(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    plain, odd = tmp_path / "plain", tmp_path / "a b"
    odd.mkdir()
    assert without_blanks(str(plain)) == str(plain)
    link = Path(without_blanks(str(odd)))
    assert " " not in str(link)
    assert link.resolve() == odd.resolve()
    assert without_blanks(str(odd)) == str(link)
    # A link to another target was made by another program.
    link.unlink()
    link.symlink_to(plain)
    assert without_blanks(str(odd)) == str(odd)


def test_the_cause_is_quoted_from_the_output_of_a_compiler():
    text = "C++ compile error\n\nCommand:\ng++ x\n\nOutput:\n/usr/bin/ld: cannot find -ltorch\n"
    assert cause(text) == "C++ compile error (/usr/bin/ld: cannot find -ltorch)"
    assert cause("CppCompileError: no compiler") == "CppCompileError: no compiler"
