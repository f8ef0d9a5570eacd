"""Recipes as data, and the groups of parameters they mean."""

import copy
import json

import pytest
import torch

from hotgrid.errors import ArgumentError
from hotgrid.vision import (
    HorizontalFlip,
    VisionRecipe,
    create_model,
    find_recipe,
    read_recipe,
    recipe_names,
)
from hotgrid.vision._training import recipe_optimizer

TINY = {"dims": (8, 8, 8), "num_classes": 3}
every_recipe = pytest.mark.parametrize("name", recipe_names())


def small_swin():
    return create_model(
        "swin_cifar", num_classes=3, embed_dim=16, depths=(1, 2), heads=(1, 2), image_size=16
    )


@every_recipe
def test_recipes_survive_json(name):
    recipe = find_recipe(name)
    assert VisionRecipe.from_plain(json.loads(json.dumps(recipe.to_plain()))) == recipe


@every_recipe
def test_every_recipe_trains_every_parameter_that_is_not_frozen(name):
    model = small_swin()
    found = recipe_optimizer(model, find_recipe(name), 100)
    trained = [path for names in found.parameters().values() for path in names]
    assert sorted(trained) == sorted(path for path, _ in model.named_parameters())
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    before = copy.deepcopy(model.state_dict())
    found.apply(50)
    found.clip()
    found.step()
    for path, parameter in model.named_parameters():
        assert not torch.equal(parameter, before[path]), path


def test_the_published_numbers_of_swin():
    recipe = find_recipe("swin")
    assert recipe.highest == pytest.approx(1e-3)
    found = recipe_optimizer(small_swin(), recipe, 3000)
    rates = {}
    for step in (0, 199, 200, 2999):
        found.apply(step)
        rates[step] = found.rates()["weights"]
    assert rates[0] == pytest.approx(1e-3 / 200)
    assert rates[199] == rates[200] == pytest.approx(1e-3)
    assert rates[2999] == pytest.approx(1e-5, rel=0.01)
    decays = {row.name: row.decay for row in found.rows()}
    assert decays == {"vectors": 0.0, "weights": 0.05}
    tables = [p for p in found.parameters()["vectors"] if "relative_position" in p]
    assert tables, "tables of relative positions have no decay"


def test_layers_have_rates_that_decay():
    recipe = find_recipe("fine-tune").changed(layer_decay=0.5)
    model = small_swin()
    found = recipe_optimizer(model, recipe, 10)
    found.apply(9)
    rates, depths = found.rates(), model.layer_ids()
    deepest = max(depths.values())
    top = max(rates.values())
    for name, paths in found.parameters().items():
        depth = depths[next(iter(paths))]
        assert {depths[path] for path in paths} == {depth}
        assert rates[name] == pytest.approx(top * 0.5 ** (deepest - depth))


def test_what_is_frozen_is_not_trained():
    model = small_swin()
    recipe = find_recipe("fine-tune").changed(freeze="//*[@name='patch_embed']")
    found = recipe_optimizer(model, recipe, 10)
    frozen = found.parameters()["frozen"]
    assert frozen and all(path.startswith("patch_embed") for path in frozen)


def test_gradients_are_clipped_by_the_norm_of_all():
    model, twin = small_swin(), small_swin()
    found = recipe_optimizer(model, find_recipe("swin"), 10)
    generator = torch.Generator().manual_seed(0)
    for ours, theirs in zip(model.parameters(), twin.parameters(), strict=True):
        ours.grad = torch.randn(ours.shape, generator=generator)
        theirs.grad = ours.grad.clone()
    norms = found.clip()
    total = torch.nn.utils.clip_grad_norm_(twin.parameters(), 5.0)
    assert torch.stack([*norms.values()]).norm().item() == pytest.approx(total.item(), rel=1e-5)
    for ours, theirs in zip(model.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad)


def test_muon_takes_the_matrices_inside():
    model = create_model("fast_resnet", **TINY)
    found = recipe_optimizer(model, find_recipe("fast-resnet").changed(optimizer="muon"), 10)
    members = found.parameters()
    assert all("layers" in path for path in members["matrices"])
    assert "head.weight" in members["weights"]


def test_a_file_changes_a_recipe(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text(
        'base = "swin"\nepochs = 30\n[augment]\nname = "horizontal_flip"\nbody = {prob = 0.3}\n'
    )
    recipe = find_recipe(str(file))
    assert recipe == read_recipe(file)
    assert (recipe.epochs, recipe.clip, recipe.augment) == (30.0, 5.0, HorizontalFlip(0.3))


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"rat": "1"}, "rate"),
        ({"rate": "fast"}, "'fast'"),
        ({"rate": "0"}, "above 0"),
        ({"smoothing": "1.0"}, "below 1"),
        ({"optimizer": "adam"}, "adamw"),
        ({"batch": "12.5"}, "12.5"),
    ],
)
def test_a_wrong_setting_is_refused(changes, text):
    with pytest.raises(ArgumentError, match=text):
        find_recipe("swin").with_texts(changes)


def test_an_unknown_recipe_is_refused():
    with pytest.raises(ArgumentError, match="did you mean `swin`"):
        find_recipe("swim")
