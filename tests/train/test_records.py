"""Weights in files: strict, partial by selector, safe."""

import os
import pickle
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings, strategies as st
from torch import nn

from hotgrid.errors import ArgumentError, DamagedError, HotgridError
from hotgrid.train import LoadReport, load_partial, save_weights

from .sharded_worker import Gpt


class Net(nn.Module):
    """A body with a norm that has buffers, and a head; the second layer is shared."""

    def __init__(self, classes: int = 3, seed: int = 0) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.body = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Linear(4, 4))
        self.tied = nn.Linear(4, 4)
        self.tied.weight = self.body[2].weight
        self.head = nn.Linear(4, classes)
        self.register_buffer("scratch", torch.randn(2), persistent=False)


def snapshot(module: nn.Module) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in module.state_dict().items()}


def same(module: nn.Module, expected: dict[str, torch.Tensor], *but: str) -> bool:
    return all(
        torch.equal(tensor, expected[name]) for name, tensor in module.state_dict().items()
        if not name.startswith(but or "-")
    )  # fmt: skip


@pytest.mark.parametrize("kind", ["safetensors", "pt", "old pt", "table"])
def test_everything_comes_back(tmp_path, kind):
    saved, found = Net(seed=1), Net(seed=2)
    path = tmp_path / f"net.{'safetensors' if kind == 'safetensors' else 'pt'}"
    if kind == "safetensors":
        save_weights(saved, path)
    elif kind == "table":
        path = saved.state_dict()
    else:
        torch.save(saved.state_dict(), path, _use_new_zipfile_serialization=kind == "pt")
    report = load_partial(found, path)
    assert same(found, saved.state_dict())
    assert found.tied.weight is found.body[2].weight
    assert not (report.missing or report.unexpected or report.mismatched or report.skipped)
    assert "body.1.running_mean" in report.loaded and "scratch" not in report.loaded


def test_the_file_is_one_that_others_can_read(tmp_path):
    from safetensors.torch import load_file

    names = save_weights(Net(), tmp_path / "net.safetensors")
    found = load_file(tmp_path / "net.safetensors")
    assert found.keys() == set(names) == Net().state_dict().keys() - {"tied.weight"}
    assert list(tmp_path.iterdir()) == [tmp_path / "net.safetensors"]


CASES = {
    "missing": lambda table: table.pop("head.bias"),
    "unexpected": lambda table: table.update({"hed.bias": torch.zeros(3)}),
    "mismatched": lambda table: table.update({"head.bias": torch.zeros(4)}),
    "mismatched kind": lambda table: table.update({"head.bias": torch.zeros(3).long()}),
    "mismatched twins": lambda table: table.update({"tied.weight": torch.zeros(4, 4)}),
}


@pytest.mark.parametrize("case", CASES)
def test_what_does_not_fit_is_refused_and_nothing_changes(case):
    table = snapshot(Net(seed=1))
    CASES[case](table)
    net = Net(seed=2)
    before = snapshot(net)
    with pytest.raises(ArgumentError) as refused:
        load_partial(net, table)
    text = str(refused.value)
    assert f"1 {case.split()[0]}: " in text
    way = {"missing": "`allow_missing=`", "unexpected": "`rename=`", "mismatched": "`skip=`"}
    assert way[case.split()[0]] in text
    assert same(net, before)
    if case == "unexpected":
        assert "nearest: `head.bias`" in text
    if case == "mismatched":
        assert "head.bias ((4,) instead of (3,))" in text


def test_only_a_part_is_loaded():
    table = {**snapshot(Net(classes=10, seed=1)), "more": torch.zeros(1)}
    net = Net(seed=2)
    before = snapshot(net)
    report = load_partial(net, table, only="//*[@name='body']")
    assert same(net, table, "head", "tied.bias")
    assert torch.equal(net.head.weight, before["head.weight"])
    assert report.unexpected == ("more",)
    assert report.skipped == ("tied.bias", "head.weight", "head.bias")


def test_a_part_is_skipped():
    table = snapshot(Net(classes=10, seed=1))
    net = Net(seed=2)
    report = load_partial(net, table, skip="//*[@name='head']")
    assert same(net, table, "head")
    assert report.skipped == ("head.weight", "head.bias")


@pytest.mark.parametrize("allowed", [True, "//*[@name='head']", "//*[@name='head']/Param"])
def test_a_part_may_be_missing(allowed):
    table = {k: v for k, v in snapshot(Net(seed=1)).items() if not k.startswith("head")}
    net = Net(seed=2)
    report = load_partial(net, table, allow_missing=allowed)
    assert report.missing == ("head.weight", "head.bias")
    assert same(net, table, "head")


def test_missing_elsewhere_is_still_an_error():
    table = {k: v for k, v in snapshot(Net()).items() if "head" not in k and "body.0" not in k}
    with pytest.raises(ArgumentError, match=r"body\.0\.weight"):
        load_partial(Net(), table, allow_missing="//*[@name='head']")


def test_a_deeper_model_is_not_filled_silently():
    """Orbax loaded twelve layers into sixteen without a word."""

    class Deep(nn.Module):
        def __init__(self, depth: int) -> None:
            super().__init__()
            self.h = nn.ModuleList(nn.Linear(2, 2) for _ in range(depth))

    with pytest.raises(ArgumentError, match=r"8 missing: h\.12\.weight"):
        load_partial(Deep(16), Deep(12).state_dict())
    with pytest.raises(ArgumentError, match=r"8 unexpected: h\.12\.weight"):
        load_partial(Deep(12), Deep(16).state_dict())


RENAMES = {
    "prefix removed": ("model.{}", {"model": ""}),
    "prefix added": ("{}", {"": ""}),
    "function": ("x_{}", lambda name: name.removeprefix("x_")),
}


@pytest.mark.parametrize("case", RENAMES)
def test_names_are_changed(case):
    template, rename = RENAMES[case]
    saved, net = Net(seed=1), Net(seed=2)
    table = {template.format(name): tensor for name, tensor in saved.state_dict().items()}
    load_partial(net, table, rename=rename)
    assert same(net, saved.state_dict())


def test_the_longest_beginning_counts_and_none_drops():
    layer = nn.Sequential(nn.Linear(2, 2))
    table = {
        "a.weight": torch.ones(2, 2),
        "a.b.bias": torch.ones(2),
        "ab.bias": torch.zeros(2),
        "optimizer.step": torch.zeros(()),
    }
    load_partial(layer, table, rename={"a": "0", "a.b": "0", "ab": None, "optimizer": None})
    assert layer[0].weight.sum() == 4 and layer[0].bias.sum() == 2


def test_wrong_renames_are_refused():
    with pytest.raises(ArgumentError, match=r"'heads', and no name .*did you mean `head`"):
        load_partial(Net(), Net().state_dict(), rename={"heads": "x"})
    with pytest.raises(ArgumentError, match=r"both `0.weight` and `1.weight`.* to `x`"):
        load_partial(Net(), {"0.weight": torch.zeros(1), "1.weight": torch.zeros(1)},
                     rename=lambda name: "x")  # fmt: skip


def test_a_selector_of_nothing_is_an_error():
    for option in ("only", "skip", "allow_missing"):
        with pytest.raises(ArgumentError, match="Lineer"):
            load_partial(Net(), Net().state_dict(), **{option: "//Lineer"})


def test_wrapped_modules_have_the_names_of_the_module(tmp_path):
    saved, net = Net(seed=1), Net(seed=2)
    save_weights(torch.compile(saved, backend="eager"), tmp_path / "net.safetensors")
    load_partial(torch.compile(net, backend="eager"), tmp_path / "net.safetensors")
    assert same(net, saved.state_dict())


def test_numbers_are_converted(tmp_path):
    saved = Gpt()
    save_weights(saved, tmp_path / "gpt.safetensors")
    low = Gpt().bfloat16()
    load_partial(low, tmp_path / "gpt.safetensors")
    assert low.head.weight.dtype == torch.bfloat16
    assert torch.equal(low.head.weight, saved.head.weight.bfloat16())


def test_a_part_is_saved(tmp_path):
    names = save_weights(Net(), tmp_path / "head.safetensors", only="//*[@name='head']")
    assert names == ["head.weight", "head.bias"]
    names = save_weights(Net(), tmp_path / "body.safetensors", skip="//*[@name='head']")
    assert "head.bias" not in names and "body.1.running_var" in names


def test_modules_without_memory_are_refused(tmp_path):
    with torch.device("meta"):
        net = nn.Linear(2, 2)
    with pytest.raises(ArgumentError, match="to_empty"):
        load_partial(net, nn.Linear(2, 2).state_dict())
    with pytest.raises(ArgumentError, match="`weight` is on the meta device"):
        save_weights(net, tmp_path / "net.safetensors")
    assert not list(tmp_path.iterdir())


def test_a_report_can_be_printed():
    many = tuple(f"h.{i}.weight" for i in range(30))
    text = str(LoadReport("gpt.safetensors", loaded=many, missing=many, skipped=("a", "b")))
    assert text.splitlines()[0] == "gpt.safetensors: 30 loaded"
    assert "30 missing: h.0.weight, " in text and "and 20 more" in text
    assert "2 skipped: a, b" in text


# ---- files from outside


class Attack:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("new", [True, False], ids=["zip", "old"])
def test_no_code_is_run(tmp_path, new):
    path, made = tmp_path / "evil.pt", tmp_path / "made"
    torch.save({"weight": Attack(made)}, path, _use_new_zipfile_serialization=new)
    with pytest.raises(DamagedError, match=r"evil.pt` was not read.*could run code"):
        load_partial(nn.Linear(2, 2), path)
    path.write_bytes(pickle.dumps(Attack(made)))
    with pytest.raises(HotgridError, match=r"evil\.pt"):
        load_partial(nn.Linear(2, 2), path)
    assert not made.exists()


def test_other_contents_are_named(tmp_path):
    path = tmp_path / "run.pt"
    torch.save({"model": nn.Linear(2, 2).state_dict(), "epoch": 3}, path)
    with pytest.raises(ArgumentError, match=r"run\.pt` holds more than tensors: model, epoch; "
                       r"one of 'model' may be"):  # fmt: skip
        load_partial(nn.Linear(2, 2), path)
    torch.save([1, 2], path)
    with pytest.raises(ArgumentError, match=r"run\.pt` is a list"):
        load_partial(nn.Linear(2, 2), path)


def test_what_is_no_file_is_said(tmp_path):
    with pytest.raises(ArgumentError, match=r"there is no file `.*nothing\.pt`"):
        load_partial(nn.Linear(2, 2), tmp_path / "nothing.pt")
    with pytest.raises(ArgumentError, match="there is no file"):
        load_partial(nn.Linear(2, 2), tmp_path)
    with pytest.raises(ArgumentError, match=r"must end in `\.safetensors`"):
        save_weights(nn.Linear(2, 2), tmp_path / "weights.pt")


@pytest.mark.parametrize("suffix", [".safetensors", ".pt", ".bin"])
@settings(max_examples=60)
@given(data=st.data())
def test_damaged_files_are_refused_by_name(suffix, data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("damage")
    path = folder / f"net{suffix}"
    layer = nn.Linear(3, 3)
    if suffix == ".safetensors":
        save_weights(layer, path)
    else:
        torch.save(layer.state_dict(), path, _use_new_zipfile_serialization=suffix == ".pt")
    whole = path.read_bytes()
    # The old format writes addresses, so its length varies: nothing drawn may depend on it.
    place = data.draw(st.integers(0, 10_000)) % len(whole)
    if data.draw(st.booleans()):
        whole = whole[:place]
    else:
        whole = whole[:place] + data.draw(st.binary(min_size=1, max_size=9)) + whole[place:]
    path.write_bytes(whole)
    # A change inside of the numbers cannot be seen; anything else is an error that names it.
    try:
        load_partial(nn.Linear(3, 3), path)
    except HotgridError as error:
        assert path.name in str(error)


@pytest.mark.parametrize("kind", ["meta", "sparse"])
def test_a_source_without_numbers_changes_nothing(kind):
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    before = {name: x.clone() for name, x in model.state_dict().items()}
    source = {name: x + 1 for name, x in before.items()}
    last = source["1.weight"]
    source["1.weight"] = last.to("meta") if kind == "meta" else last.to_sparse()
    with pytest.raises(ArgumentError, match=rf"1\.weight \(.*{kind}.*give a dense tensor"):
        load_partial(model, source)
    assert all(torch.equal(x, before[name]) for name, x in model.state_dict().items())
