"""LoRA, freezing and re-heading by selector."""

import copy
import pickle

import pytest
import torch
from torch import nn

from hotgrid.errors import ArgumentError
from hotgrid.nn import select
from hotgrid.train import (
    AdamW,
    freeze,
    groups,
    load_partial,
    lora,
    merge_lora,
    rehead,
    save_weights,
    trainable,
)

from .sharded_worker import ITEMS, Block, Gpt, train

LAYERS = "Gpt/*[@name='h']//Linear"
X = torch.arange(ITEMS)


def adapted(seed: int = 1) -> Gpt:
    model = Gpt()
    lora(model, LAYERS, rank=2, alpha=6)
    generator = torch.Generator().manual_seed(seed)
    for p in select(model, "//Param[@name='lora_b']").parameters().values():
        p.data.normal_(generator=generator)
    return model


def test_nothing_changes_at_first():
    model = Gpt()
    before = model(X)
    report = lora(model, LAYERS, rank=2)
    assert torch.equal(model(X), before)
    expected = {f"h.{i}.{n}.lora_{x}" for i in (0, 1) for n in ("fc", "proj") for x in "ab"}
    assert set(report.paths) == expected
    assert report.trained == 4 * 2 * (7 + 16)
    assert f"{report.trained:,} of {report.total:,} parameters" in str(report)
    # Paths of the model are as before, so files of weights fit.
    assert Gpt().state_dict().keys() < model.state_dict().keys()


def test_the_product_is_added():
    model, plain = adapted(), Gpt()
    for path in ("h.0.fc", "h.0.proj", "h.1.fc", "h.1.proj"):
        layer = model.get_submodule(path)
        plain.get_submodule(path).weight.data += 3 * layer.lora_b @ layer.lora_a
    torch.testing.assert_close(model(X), plain(X), rtol=1e-12, atol=1e-12)


def test_merging_keeps_outputs_and_restores_the_structure():
    model = adapted()
    before = model(X).detach()
    assert merge_lora(model) == ["h.0.fc", "h.0.proj", "h.1.fc", "h.1.proj"]
    torch.testing.assert_close(model(X), before, rtol=1e-12, atol=1e-12)
    assert [*model.state_dict()] == [*Gpt().state_dict()]
    assert [type(m) for m in model.modules()] == [type(m) for m in Gpt().modules()]
    with pytest.raises(ArgumentError, match="no adapters"):
        merge_lora(model)


def test_merging_an_adapter_of_zeros_changes_no_bit():
    model, plain = Gpt().bfloat16(), Gpt().bfloat16()
    lora(model, "//Linear", rank=1)
    merge_lora(model)
    for name, tensor in plain.state_dict().items():
        assert torch.equal(model.state_dict()[name], tensor)


def test_merging_rounds_once():
    model = adapted().bfloat16()
    layer = model.h[0].fc
    exact = layer.weight.float() + 3.0 * (layer.lora_b.float() @ layer.lora_a.float())
    merge_lora(model)
    assert torch.equal(layer.weight, exact.bfloat16())


def test_only_adapters_are_trained():
    model = adapted()
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    optimizer = groups(model, {}, rest=AdamW(rate=0.01))
    assert all("lora_" in key for key in optimizer.state())
    train(model, optimizer, 3)
    for name, p in model.named_parameters():
        assert torch.equal(p, before[name]) == ("lora_" not in name), name


def test_adapters_are_saved_and_loaded_alone(tmp_path):
    path = tmp_path / "adapters.safetensors"
    adapters = "//Param[starts-with(@name, 'lora_')]"
    names = save_weights(adapted(), path, only=adapters)
    assert len(names) == 8
    other = Gpt()
    lora(other, LAYERS, rank=2, alpha=6)
    load_partial(other, path, only=adapters)
    assert torch.equal(other(X), adapted()(X))


def test_classes_made_from_linear_keep_their_forward():
    class Doubled(nn.Linear):
        def forward(self, input):
            return 2 * super().forward(input)

    model = nn.Sequential(Doubled(3, 3))
    x = torch.randn(2, 3)
    before = model(x)
    lora(model, "//Doubled", rank=1)
    assert type(model[0]).__name__ == "LoRADoubled"
    assert torch.equal(model(x), before)
    assert torch.equal(copy.deepcopy(model)(x), before)
    merge_lora(model)
    assert type(model[0]) is Doubled


def test_a_shared_layer_gets_one_adapter():
    layer = nn.Linear(3, 3)
    model = nn.Sequential(layer, nn.Tanh(), layer)
    lora(model, "//Linear", rank=1)
    assert len(trainable(model).paths) == 2
    merge_lora(model)
    assert type(layer) is nn.Linear


@pytest.mark.parametrize(
    ("selector", "rank", "said"),
    [
        ("//Block", 2, r"`h\.0`, which `//Block` selects, is Block"),
        ("//Linear", 4, r"`head` it can be 1 to 3"),
        ("//Linear", 0, r"`rank` is 0"),
        ("//Lineer", 1, "Lineer"),
        ("//Param", 1, "only parameters"),
    ],
)
def test_wrong_adapters_are_refused(selector, rank, said):
    model = Gpt()
    with pytest.raises(ArgumentError, match=said):
        lora(model, selector, rank=rank)
    assert all(p.requires_grad for p in model.parameters())
    assert not any("lora" in name for name in model.state_dict())


def test_a_second_adapter_is_refused():
    with pytest.raises(ArgumentError, match="adapter already"):
        lora(adapted(), "//LoRALinear", rank=1)


def test_earlier_adapters_stay_trained():
    net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 4))
    lora(net, "*/*[@index=0]", rank=1)
    freeze(net, "//*[@name='lora_b']")
    found = lora(net, "*/*[@index=1]", rank=2)
    assert found.paths == ("0.lora_a", "1.lora_a", "1.lora_b")


def test_the_rest_can_stay_trained():
    model = Gpt()
    lora(model, LAYERS, rank=2, freeze_rest=False)
    assert all(p.requires_grad for p in model.parameters())


def test_freezing_and_back():
    model = Gpt()
    total = sum(p.numel() for p in model.parameters())
    report = freeze(model, "//*[@name='h'] | //*[@name='wte'] | //Conv1d")
    assert report.paths == ("head.weight", "head.bias")
    assert (report.trained, report.total) == (3 * 7 + 3, total)
    assert freeze(model, "//Param[@name='bias']", frozen=False).paths == tuple(
        name for name, _ in model.named_parameters() if "bias" in name or "head" in name
    )


@pytest.mark.parametrize("wrap", [lambda m: m, lambda m: torch.compile(m, backend="eager")])
def test_a_new_head(wrap):
    model = Gpt()
    model.eval()
    old = rehead(wrap(model), "//*[@name='head']", nn.Linear(7, 5))
    assert old.out_features == 3
    assert model(X).shape == (ITEMS, 5)
    assert model.head.weight.dtype == torch.float64 and not model.head.training


def test_a_new_member_of_a_list():
    model = Gpt()
    rehead(model, "//Block[2]", nn.Identity())
    assert isinstance(model.h[1], nn.Identity) and isinstance(model.h[0], Block)
    assert list(select(model, "//Identity").modules()) == ["h.1"]


@pytest.mark.parametrize(
    ("selector", "said"),
    [
        ("//Linear", r"selects 5 nodes, `h\.0\.fc`"),
        ("//*[@name='head']/*[@name='weight']", r"the parameter `head\.weight`"),
        ("Gpt", "the whole model"),
        ("//*[@name='heads']", "heads"),
    ],
)
def test_wrong_heads_are_refused(selector, said):
    with pytest.raises(ArgumentError, match=said):
        rehead(Gpt(), selector, nn.Linear(7, 5))


def test_what_is_no_module_is_refused():
    with pytest.raises(ArgumentError, match=r"expected a torch\.nn\.Module"):
        rehead(Gpt(), "//*[@name='head']", 3)


def test_merging_into_a_shared_weight_is_refused():
    model = nn.Sequential(nn.Embedding(10, 4), nn.Linear(4, 10, bias=False))
    model[1].weight = model[0].weight
    lora(model, "//Linear", rank=2)
    with pytest.raises(ArgumentError, match="is shared with another layer"):
        merge_lora(model)


def test_adapters_survive_pickling():
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))
    lora(model, "//Linear[1]", rank=2)
    nn.init.ones_(model[0].lora_b)
    again = pickle.loads(pickle.dumps(model))
    x = torch.randn(3, 4)
    assert torch.equal(again(x), model(x))
    assert merge_lora(again) == ["0"]


def test_an_adapter_without_an_effect_is_refused():
    model = nn.MultiheadAttention(8, 2)
    with pytest.raises(ArgumentError, match="`out_proj` belongs to a MultiheadAttention"):
        lora(model, "//*[@name='out_proj']", rank=2)
