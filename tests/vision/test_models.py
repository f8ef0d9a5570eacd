"""Models by name: timm's weights and logits, features, heads, files, and errors."""

import dataclasses
import hashlib
import json
import runpy
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings, strategies as st
from safetensors.torch import save_file

from hotgrid.errors import ArgumentError, ContractError, DamagedError, StoreError
from hotgrid.vision import VisionModel, create_model, list_models

RECORDED = json.loads((Path(__file__).parent / "timm_logits.json").read_text())["models"]
_made = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "named_weights.py"))
named_weights, named_image = _made["named_weights"], _made["named_image"]
# `make test` runs small models, on the images that they are made for if there are several.
LARGE = 12_000_000
# The smallest of their families are larger.
ENTERED = {
    *("resnet26", "vit_small_patch16_224", "deit_small_patch16_224"),
    *("swin_tiny_patch4_window7_224", "swinv2_tiny_window8_256"),
}
ANSWERED = [
    pytest.param(
        name,
        answer,
        id=f"{name} {json.dumps(answer['changes'])}",
        marks=[pytest.mark.long]
        * (
            (model["parameters"] > LARGE and name not in ENTERED)
            or (len(model["answers"]) > 1 and bool(answer["changes"]))
        ),
    )
    for name, model in RECORDED.items()
    for answer in model["answers"]
]
# A small model of each family.
SMALL: dict[str, dict[str, Any]] = {
    "resnet18": {"image_size": 64},
    "resnet26": {"image_size": 64},
    "resnet18_cifar": {"depths": (1, 1, 1, 1)},
    "fast_resnet": {"dims": (16, 32, 32)},
    "swin_cifar": {"embed_dim": 24, "depths": (2, 2, 2)},
    "swinv2_cifar": {"embed_dim": 24, "depths": (2, 2, 2)},
    "vit_tiny_patch16_224": {"embed_dim": 48, "image_size": 32, "depth": 4},
    "convnext_atto": {"depths": (1, 1, 2, 1)},
    "convnextv2_tiny": {"depths": (1, 1, 1, 1), "dims": (8, 16, 24, 32)},
}


def digest(lines) -> str:
    return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()[:16]


@lru_cache(maxsize=4)
def small(name: str, **changes: Any) -> VisionModel:
    torch.manual_seed(0)
    return create_model(name, **{**SMALL[name], **changes})


def images(model: VisionModel, batch: int = 2) -> torch.Tensor:
    size = min(model.config.image_size, 64)
    return named_image(size, model.config.in_chans, batch)


def shapes(model: torch.nn.Module) -> dict[str, list[int]]:
    return {name: list(each.shape) for name, each in model.state_dict().items()}


@pytest.fixture
def kept(tmp_path):
    """Saves weights to a file."""

    def save(weights, name="weights.safetensors") -> Path:
        weights = {key: each.contiguous() for key, each in weights.items()}
        (save_file if name.endswith(".safetensors") else torch.save)(weights, tmp_path / name)
        return tmp_path / name

    return save


@pytest.fixture
def nothing_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Initial values are not drawn, which takes most of making a model: they are NaN."""
    for name in ("normal_", "uniform_"):
        monkeypatch.setattr(
            torch.Tensor, name, lambda x, *_, **__: x if x.is_meta else x.fill_(torch.nan)
        )


@pytest.mark.usefixtures("nothing_drawn")
@pytest.mark.parametrize("name", RECORDED)
def test_names_shapes_and_depths_are_those_of_timm(name):
    with torch.device("meta"):
        model = create_model(name)
    recorded = RECORDED[name]
    assert digest(f"{k} {s}" for k, s in shapes(model).items()) == recorded["weights"]
    assert sum(each.numel() for each in model.parameters()) == recorded["parameters"]
    assert digest(f"{k} {d}" for k, d in model.layer_ids().items()) == recorded["depths"]


def test_only_models_of_our_own_are_not_recorded():
    ours = {"fast_resnet", "fast_resnet_wide", "resnet18_cifar"}
    assert set(list_models()) - set(RECORDED) == ours


@pytest.mark.slow
@pytest.mark.usefixtures("nothing_drawn")
@pytest.mark.parametrize(("name", "answer"), ANSWERED)
@torch.no_grad()
def test_timm_weights_load_and_give_the_logits_and_maps_of_timm(name, answer, kept):
    with torch.device("meta"):
        wanted = shapes(create_model(name, **answer["changes"]))
    path = kept(named_weights(wanted))
    model = create_model(name, pretrained=path, **answer["changes"]).eval()
    given = named_image(model.config.image_size)
    logits = model(given)
    expected = torch.tensor(answer["logits"])
    scale = logits.abs().max()
    assert (logits[:, :6] - expected).abs().max() < 1e-5 * scale
    for found, recorded in zip(model.features(given), answer["maps"], strict=True):
        assert list(found.shape) == recorded["shape"]
        values = found.flatten()[:: found.numel() // 7]
        assert (
            values - torch.tensor(recorded["values"])
        ).abs().max() < 1e-5 * found.abs().max()


@pytest.mark.parametrize("name", SMALL)
def test_a_model_gives_logits_maps_and_pooled_features(name):
    model = small(name).eval()
    given = images(model)
    with torch.no_grad():
        maps, pooled, logits = model.features(given), model.embed(given), model(given)
    assert tuple(each.shape[1] for each in maps) == model.widths
    sides = [each.shape[-1] for each in maps]
    assert sides == sorted(sides, reverse=True)
    assert pooled.shape == (2, model.widths[-1])
    assert logits.shape == (2, model.config.num_classes)
    assert torch.equal(logits, model.head_layer()(pooled))


@pytest.mark.parametrize("name", SMALL)
def test_every_trained_parameter_gets_a_gradient_and_a_step_lowers_the_loss(name):
    model = create_model(name, **SMALL[name], num_classes=5).train()
    torch.manual_seed(0)
    # Blocks that start as nothing would keep gradients from their first layers.
    with torch.no_grad():
        for each in model.parameters():
            each.add_(torch.randn_like(each) * 0.02)
    given, labels = images(model, 4), torch.tensor([0, 1, 2, 3])
    loss = torch.nn.functional.cross_entropy(model(given), labels)
    loss.backward()
    trained = {n: p for n, p in model.named_parameters() if p.requires_grad}
    without = [n for n, p in trained.items() if p.grad is None or not p.grad.any()]
    # The softmax does not see a bias of the keys, but its gradient is not exactly 0.
    assert not without
    with torch.no_grad():
        norm = sum(p.grad.square().sum() for p in trained.values()).sqrt()
        for p in trained.values():
            p.sub_(0.02 / norm * p.grad)
        after = torch.nn.functional.cross_entropy(model(given), labels)
    assert after < loss


@pytest.mark.parametrize("name", SMALL)
def test_checkpointing_changes_no_gradient(name):
    plain = create_model(name, **SMALL[name], num_classes=5).train()
    again = create_model(name, **SMALL[name], num_classes=5, checkpointing=True).train()
    again.load_state_dict(plain.state_dict())
    given = images(plain)
    for model in (plain, again):
        model(given).square().sum().backward()
    for (label, one), other in zip(plain.named_parameters(), again.parameters(), strict=True):
        if one.grad is not None:
            torch.testing.assert_close(one.grad, other.grad, msg=label)


@pytest.mark.parametrize("name", SMALL)
def test_a_configuration_round_trips_through_json(name):
    model = small(name, drop_path=0.1, num_classes=7)
    data = json.loads(json.dumps(model.config.to_dict()))
    again = create_model(**data)
    assert again.config == model.config
    assert shapes(again) == shapes(model)
    with pytest.raises(dataclasses.FrozenInstanceError):
        again.config.num_classes = 3


@pytest.mark.parametrize("name", SMALL)
def test_a_model_without_memory_gets_initial_values(name):
    with torch.device("meta"):
        model = create_model(name, **SMALL[name])
    model.to_empty(device="cpu")
    for each in (*model.parameters(), *model.buffers()):
        each.data.fill_(3)
    torch.manual_seed(1)
    model.reset_parameters()
    fresh = create_model(name, **SMALL[name])
    for (label, one), other in zip(
        (*model.named_parameters(), *model.named_buffers()),
        (*fresh.parameters(), *fresh.buffers()),
        strict=True,
    ):
        if other.is_floating_point():
            spread = other.float().std(unbiased=False)
            assert (one.float().std(unbiased=False) - spread).abs() <= 0.35 * spread, label
        else:
            assert torch.equal(one, other), label


@pytest.mark.parametrize("name", SMALL)
def test_a_new_head_keeps_the_rest(name):
    model = create_model(name, **SMALL[name]).eval()
    given = images(model)
    before = model.embed(given)
    model.reset_head(3)
    assert model(given).shape == (2, 3)
    assert model.config.num_classes == 3
    assert torch.equal(model.embed(given), before)
    model.reset_head(0)
    assert torch.equal(model(given), before)


@pytest.mark.parametrize("name", SMALL)
def test_a_depth_between_stem_and_head_is_a_block(name):
    model = small(name)
    blocks = [
        path for path, each in model.named_modules() if isinstance(each, model.block_types)
    ]
    depths = model.layer_ids()
    assert max(depths.values()) == len(blocks) + 1
    for depth, path in enumerate(blocks, 1):
        inside = {found for name, found in depths.items() if name.startswith(path + ".")}
        assert inside == {depth}


def test_decay_leaves_out_vectors_and_tables_of_positions():
    left = {
        name
        for model in ("swin_cifar", "swinv2_cifar", "vit_tiny_patch16_224", "resnet18")
        for name, each in small(model).named_parameters()
        if not small(model).decays(name, each) and each.ndim > 1
    }
    assert {name.rpartition(".")[2] for name in left if "cpb_mlp" not in name} == {
        "relative_position_bias_table",
        "logit_scale",
        "cls_token",
        "pos_embed",
    }
    model = small("swinv2_cifar")
    assert not model.decays("norm.bias", model.norm.bias)
    assert model.decays("head.fc.weight", model.head.fc.weight)


def test_names_are_listed_by_pattern():
    assert list_models("swin_tiny*") == ["swin_tiny_patch4_window7_224"]
    assert len(list_models()) == len(set(list_models())) == 72
    assert list_models("nothing*") == []


# Exported programs

TRACED: dict[str, dict[str, Any]] = {
    "resnet18": {"depths": (1, 1, 1, 1)},
    "fast_resnet": {"dims": (8, 8)},
    "swin_cifar": {"embed_dim": 8, "depths": (2, 1), "heads": (2, 2), "windows": 7},
    "swinv2_cifar": {"embed_dim": 8, "depths": (2, 1), "heads": (2, 2), "windows": 7},
    "vit_tiny_patch16_224": {"embed_dim": 12, "image_size": 32, "depth": 4},
    "convnext_atto": {"depths": (1, 1), "dims": (8, 16)},
    "convnextv2_tiny": {"depths": (1, 1), "dims": (8, 16)},
}


@pytest.mark.long
@pytest.mark.parametrize("name", TRACED)
@torch.no_grad()
def test_a_model_is_one_graph_for_any_batch(name):
    model = create_model(name, **TRACED[name], num_classes=5).eval()
    batch = torch.export.Dim("batch", min=1, max=64)
    given = images(model, 5)
    program = torch.export.export(
        model, (given[:2],), dynamic_shapes=({0: batch},), strict=True
    )
    torch.testing.assert_close(program.module()(given), model(given))


# Files


def test_files_of_torch_and_of_training_scripts_load(tmp_path, kept):
    model = small("resnet18")
    weights = model.state_dict()
    given = images(model)
    wanted = model.eval()(given)
    for inside in (
        weights,
        {"state_dict": weights, "epoch": 3},
        {"model": {f"module.{name}": each for name, each in weights.items()}},
    ):
        torch.save(inside, tmp_path / "model.pth")
        loaded = create_model("resnet18", pretrained=tmp_path / "model.pth").eval()
        assert torch.equal(loaded(given), wanted)


@pytest.mark.parametrize("name", ["swin_cifar", "swinv2_cifar"])
def test_files_of_microsoft_are_renamed(name, kept):
    model = small(name)
    weights = named_weights(shapes(model))
    original = {}
    for key, each in weights.items():
        moved = key.replace("head.fc.", "head.")
        for stage in (1, 2):
            moved = moved.replace(
                f"layers.{stage}.downsample", f"layers.{stage - 1}.downsample"
            )
        original[moved] = each
    original["layers.0.blocks.1.attn_mask"] = torch.zeros(1)
    original["layers.0.blocks.0.attn.relative_position_index"] = torch.zeros(1)
    original["layers.0.blocks.0.attn.relative_coords_table"] = torch.zeros(1)
    loaded = create_model(name, pretrained=kept(original, "swin.pth"), **SMALL[name])
    for key, each in loaded.state_dict().items():
        assert torch.equal(each, weights[key]), key


@pytest.mark.parametrize("channels", [1, 2, 6])
def test_weights_for_colours_serve_other_channels(channels, kept):
    colours = small("resnet18").eval()
    path = kept(colours.state_dict())
    model = create_model("resnet18", pretrained=path, in_chans=channels).eval()
    given = named_image(64, 1)
    # One channel repeated is the same picture however many there are.
    found = model(given.expand(-1, channels, -1, -1))
    if channels != 2:
        torch.testing.assert_close(found, colours(given.expand(-1, 3, -1, -1)))
    assert found.shape == (2, 1000)


def test_positions_are_fitted_to_another_size_of_images(kept):
    # With positions that are the same everywhere nothing changes but how many there are.
    model = small("vit_tiny_patch16_224")
    weights = dict(model.state_dict())
    weights["pos_embed"] = weights["pos_embed"][:, :1].expand(-1, 5, -1)
    larger = create_model(
        "vit_tiny_patch16_224",
        pretrained=kept(weights),
        **{**SMALL["vit_tiny_patch16_224"], "image_size": 48},
    )
    fitted = larger.get_parameter("pos_embed")
    assert fitted.shape[1] == 10
    torch.testing.assert_close(fitted, weights["pos_embed"][:, :1].expand(-1, 10, -1))


def test_tables_of_positions_are_fitted_to_another_window(kept):
    model = small("swin_cifar")
    weights = dict(model.state_dict())
    for name, each in weights.items():
        if name.endswith("relative_position_bias_table"):
            # A ramp downwards, the same in each column.
            ramp = torch.linspace(-1, 1, 7).repeat_interleave(7)
            weights[name] = ramp[:, None].expand(-1, each.shape[1])
    other = create_model(
        "swin_cifar", pretrained=kept(weights), **{**SMALL["swin_cifar"], "windows": 8}
    )
    table = other.get_parameter("layers.0.blocks.0.attn.relative_position_bias_table")
    table = table[:, 0].reshape(15, 15)
    assert torch.allclose(table, table[:, :1].expand(-1, 15), atol=1e-6)
    assert (table[1:, 0] >= table[:-1, 0] - 1e-6).all()
    assert torch.allclose(table, -table.flip(0), atol=1e-5)


# Errors


def test_a_wrong_name_gets_a_hint():
    with pytest.raises(ArgumentError, match="no model `resnet51`; did you mean `resnet"):
        create_model("resnet51")
    with pytest.raises(ArgumentError, match="`tv_in1k` names weights: use `resnet50`"):
        create_model("resnet50.tv_in1k")
    with pytest.raises(ArgumentError, match="has no `depth`; did you mean `depths`"):
        create_model("resnet18", depth=3)


@pytest.mark.parametrize(
    ("name", "changes", "said"),
    [
        ("resnet18", {"num_classes": -1}, "`num_classes` -1: choose 0"),
        ("resnet18", {"drop_path": 1.0}, "`drop_path` 1.0: choose a share"),
        ("resnet18", {"image_size": 0}, "`image_size` must be at least 1, got 0"),
        ("resnet18", {"block": "botleneck"}, "did you mean `bottleneck`"),
        ("resnet18", {"depths": (1, 2)}, "`depths` .* must have 4 numbers"),
        ("swin_cifar", {"heads": (3, 6)}, "`heads` .* must have a number for each of 3"),
        ("swin_cifar", {"image_size": 33}, "33 is not a multiple of the patch, 2"),
        ("swin_cifar", {"version": 3}, "`version` 3: choose 1 or 2"),
        ("swin_cifar", {"heads": (5, 6, 12)}, "96 channels cannot be shared by 5 heads"),
        ("vit_tiny_patch16_224", {"image_size": 100}, "100 is not a multiple of the patch, 16"),
        ("vit_tiny_patch16_224", {"heads": 5}, "192 cannot be shared by 5 heads"),
        ("vit_tiny_patch16_224", {"depth": 3}, "`depth` 3: choose 4 or more"),
        ("vit_tiny_patch16_224", {"depth": "x"}, "`depth` is 'x'; expected int"),
        ("swin_cifar", {"depths": 3}, "`depths` is 3; expected tuple"),
        ("convnext_atto", {"dims": (8, 8)}, "must be of one length"),
        ("fast_resnet", {"image_size": 8}, "`image_size` 8: 3 stages need 9 or more"),
        ("fast_resnet", {"convs": 0}, "`convs` must be at least 1, got 0"),
    ],
)
def test_numbers_that_do_not_fit_are_refused(name, changes, said):
    with pytest.raises(ArgumentError, match=said):
        create_model(name, **changes)


def test_a_head_of_other_classes_is_refused_unless_a_number_is_given(kept):
    path = kept(small("resnet18", num_classes=5).state_dict())
    with pytest.raises(
        ArgumentError, match="5 classes and `resnet18` 1000; give `num_classes=5"
    ):
        create_model("resnet18", pretrained=path)
    same = create_model("resnet18", pretrained=path, num_classes=5)
    assert torch.equal(same.fc.weight, small("resnet18", num_classes=5).fc.weight)
    other = create_model("resnet18", pretrained=path, num_classes=3)
    assert other.fc.weight.shape == (3, 512)
    assert torch.equal(other.conv1.weight, same.conv1.weight)
    assert create_model("resnet18", pretrained=path, num_classes=0).config.num_classes == 0


def test_a_file_without_a_head_needs_a_number_of_classes(kept):
    weights = {
        name: each
        for name, each in small("resnet18").state_dict().items()
        if not name.startswith("fc.")
    }
    with pytest.raises(ArgumentError, match=r"has no head \(`fc.weight`\); give `num_classes`"):
        create_model("resnet18", pretrained=kept(weights))
    model = create_model("resnet18", pretrained=kept(weights), num_classes=4)
    assert torch.equal(model.conv1.weight, weights["conv1.weight"])


def test_a_file_of_another_model_is_named_with_what_is_missing(kept):
    weights = small("resnet18").state_dict()
    weights["layer1.0.convv1.weight"] = weights.pop("layer1.0.conv1.weight")
    with pytest.raises(ArgumentError) as problem:
        create_model("resnet18", pretrained=kept(weights))
    said = str(problem.value)
    assert "not a file of weights of `resnet18`" in said
    assert "lacks 1, first `layer1.0.conv1.weight` (it has `layer1.0.convv1.weight`)" in said
    assert "1 too many, first `layer1.0.convv1.weight`; did you mean `layer1.0.conv1" in said
    with pytest.raises(ArgumentError, match="it lacks"):
        create_model("resnet50", pretrained=kept(small("resnet18").state_dict()))


def test_a_weight_of_another_shape_is_named(kept):
    weights = dict(small("resnet18").state_dict())
    weights["bn1.weight"] = torch.ones(3)
    with pytest.raises(ArgumentError, match=r"`bn1.weight` has the shape \[3\] in .* \[64\]"):
        create_model("resnet18", pretrained=kept(weights))


def test_files_that_are_no_weights_are_refused(tmp_path):
    with pytest.raises(StoreError, match="there is no file"):
        create_model("resnet18", pretrained=tmp_path / "absent.pth")
    # The last reads as pickle, of something that is not there.
    torn = {"torn.safetensors": b"not weights", "torn.pth": b"not weights", "t.txt": b"hello"}
    for name, data in torn.items():
        (tmp_path / name).write_bytes(data)
        with pytest.raises(DamagedError, match="is not a file of weights"):
            create_model("resnet18", pretrained=tmp_path / name)
    torch.save({"losses": [1.0]}, tmp_path / "losses.pth")
    with pytest.raises(ArgumentError, match="has no weights by name; it has the keys losses"):
        create_model("resnet18", pretrained=tmp_path / "losses.pth")


def test_images_of_another_shape_are_refused():
    with pytest.raises(ContractError, match="in_chans"):
        small("resnet18")(torch.zeros(1, 1, 64, 64))
    with pytest.raises(ContractError, match="image_size"):
        small("swin_cifar")(torch.zeros(1, 3, 48, 32))
    with pytest.raises(ContractError, match="image_size"):
        small("vit_tiny_patch16_224")(torch.zeros(1, 3, 48, 48))


# The fast ResNet


@settings(max_examples=20)
@given(st.integers(0, 2**31), st.sampled_from([1, 3]))
def test_whitened_patches_are_uncorrelated_and_of_unit_variance(seed, channels):
    generator = torch.Generator().manual_seed(seed)
    noise = torch.randn(64, channels, 33, 33, generator=generator)
    # Neighbours of a smooth picture are alike.
    given = noise[..., 1:, 1:] + noise[..., :-1, 1:] + 0.5 * noise.mean(1, True)[..., 1:, 1:]
    model = create_model("fast_resnet", in_chans=channels)
    model.whiten(given, eps=0.0)
    patches = torch.nn.functional.conv2d(given, model.whitening.weight)
    half = patches.shape[1] // 2
    assert torch.equal(patches[:, :half], -patches[:, half:])
    covariance = torch.cov(patches[:, :half].transpose(0, 1).flatten(1))
    assert (covariance - torch.eye(half)).abs().max() < 1e-3


def test_the_first_layer_of_the_fast_resnet_and_gains_are_not_trained():
    model = create_model("fast_resnet")
    frozen = [name for name, each in model.named_parameters() if not each.requires_grad]
    assert frozen[0] == "whitening.weight"
    assert all(name.endswith(("norm.weight", "branch.1.weight")) for name in frozen[1:])
    assert len(frozen) == 7
