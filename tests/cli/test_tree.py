"""`hotgrid tree`, in this process."""

import json
from pathlib import Path

import pytest

from .command import run

NET = """
import torch
from torch import nn

MADE_ON = []


class Net(nn.Module):
    def __init__(self, width: int = 4, kind: str = "plain"):
        super().__init__()
        self.kind = kind
        self.wte = nn.Embedding(10, width)
        self.h = nn.ModuleList([nn.Linear(width, width) for _ in range(2)])
        self.head = nn.Linear(width, 10, bias=False)
        self.head.weight = self.wte.weight
        self.h[1].bias.requires_grad_(False)


def large() -> nn.Module:
    return nn.Linear(10**7, 10**7)


def on_cpu_only() -> nn.Module:
    value = torch.ones(2).sum().item()  # a tensor on the meta device has no values
    return nn.Linear(int(value), 3)


def broken() -> nn.Module:
    raise RuntimeError("no such depth")


made = nn.Linear(2, 3)
number = 3
"""


@pytest.fixture
def net(tmp_path: Path) -> str:
    path = tmp_path / "net.py"
    path.write_text(NET)
    return str(path)


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert run(["tree", *arguments]) == 0, capsys.readouterr().err
    return capsys.readouterr().out


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert run(["tree", *arguments]) == 1
    return capsys.readouterr().err


def test_it_shows_the_tree_and_counts(net: str, capsys: pytest.CaptureFixture[str]):
    lines = told(capsys, f"{net}:Net").splitlines()
    assert lines[0].split() == ["type", "path", "shape", "dtype", "parameters"]
    assert lines[1].split() == ["Net", "80"]  # the head shares the embedding
    assert lines[3].split() == [
        "│",
        "└─",
        "Param",
        "wte.weight",
        "10",
        "x",
        "4",
        "float32",
        "40",
    ]
    assert lines[-4].split()[:3] == ["└─", "Linear", "head"]
    assert lines[-2] == "3 Linear, 1 Net, 1 Embedding, 1 ModuleList"
    assert lines[-1] == "Net: 80 parameters in 5 tensors (320 B), 4 frozen, 6 modules."


def test_it_shows_a_selection(net: str, capsys: pytest.CaptureFixture[str]):
    lines = told(capsys, f"{net}:Net", "--select", "//Linear/*[@rank=1]").splitlines()
    assert [line.split()[1] for line in lines[1:3]] == ["h.0.bias", "h.1.bias"]
    assert lines[3] == "Selected 2 nodes: 8 parameters in 2 tensors, 10.00% of all."


def test_depth_and_arguments(net: str, capsys: pytest.CaptureFixture[str]):
    out = told(capsys, f"{net}:Net", "--depth", "1", "--set", "width=8", "--set", "kind=x")
    assert [line.split()[-2] for line in out.splitlines()[2:5]] == ["wte", "h", "head"]
    assert "224 parameters" in out


@pytest.mark.parametrize("word", ["false", "False"])
def test_false_is_not_a_text(word, capsys: pytest.CaptureFixture[str]):
    sizes = ("--set", "in_features=2", "--set", "out_features=3")
    assert "6 parameters in 1 tensors" in told(
        capsys, "torch.nn:Linear", *sizes, "--set", f"bias={word}"
    )


def test_json_has_the_same(net: str, capsys: pytest.CaptureFixture[str]):
    found = json.loads(
        told(capsys, f"{net}:Net", "--select", "//Param[@name='bias']", "--json")
    )
    assert (found["root"], found["parameters"], found["trainable"]) == ("Net", 80, 76)
    assert found["select"]["parameters"] == 8
    assert [node["path"] for node in found["nodes"]] == ["h.0.bias", "h.1.bias"]
    assert found["nodes"][1] == {
        "type": "Param",
        "path": "h.1.bias",
        "name": "bias",
        "index": None,
        "shape": [4],
        "dtype": "float32",
        "trainable": False,
        "parameters": 4,
    }


def test_a_large_model_takes_no_memory(net: str, capsys: pytest.CaptureFixture[str]):
    assert "100,000,010,000,000 parameters in 2 tensors (400 TB)" in told(
        capsys, f"{net}:large"
    )


def test_what_cannot_be_made_without_memory_is_made_with_it(net: str, capsys):
    assert "9 parameters" in told(capsys, f"{net}:on_cpu_only")
    assert "9 parameters" in told(capsys, f"{net}:made")


def test_a_module_can_be_imported_by_name(capsys: pytest.CaptureFixture[str]):
    out = told(capsys, "torch.nn:Bilinear", *(
        part for name in ("in1", "in2", "out") for part in ("--set", f"{name}_features=2")
    ))  # fmt: skip
    assert "Bilinear: 10 parameters" in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["Net"], "must be `package.module:factory`"),
        (["no_such_package:Net"], "there is no module `no_such_package`"),
        (["no_such_file.py:Net"], "there is no file `no_such_file.py`"),
        (["torch.nn:Linaer"], "did you mean `Linear`?"),
        (["torch.nn:Linear"], "missing 2 required positional arguments"),
        (["torch.nn:Linear", "--set", "x"], "`--set x` must be NAME=VALUE"),
        (["{net}:broken"], "fails with RuntimeError: no such depth"),
        (["{net}:number"], "is not a module, a class or a function"),
        (["torch:empty", "--set", "size=(2,)"], "returned Tensor"),
        (["{net}:Net", "--select", "//Liner"], "did you mean `Linear`?"),
        (["{net}:Net", "--select", "//Linear["], "found the end"),
        (["{net}:Net", "--depth", "-1"], "got -1"),
    ],
)
def test_what_is_wrong_is_said(arguments: list[str], words: str, net: str, capsys):
    assert words in refused(capsys, *(each.replace("{net}", net) for each in arguments))
