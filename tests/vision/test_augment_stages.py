"""What every stage must do. One enters by being exported from `hotgrid.vision`."""

import inspect
import json

import pytest
import torch
from torch import Tensor

import hotgrid.vision
from hotgrid.errors import ArgumentError
from hotgrid.vision import (
    Augmentation,
    AugmentStage,
    ChooseOne,
    ColourJitter,
    ColumnBatches,
    CutMix,
    Grayscale,
    HorizontalFlip,
    Invert,
    MixUp,
    NormalisePixels,
    RandomErasing,
    Rotate,
    Solarize,
    StageSequence,
    Translate,
    WithProb,
    augment_stages,
    read_augmentation,
    sample_keys,
    write_augmentation,
)

EXPORTED = {
    name: value
    for name, value in vars(hotgrid.vision).items()
    if inspect.isclass(value)
    and issubclass(value, AugmentStage)
    and not inspect.isabstract(value)
}
# What a stage is made with where its defaults would do nothing, or not always.
MADE = {
    "HorizontalFlip": {"prob": 1.0},
    "VerticalFlip": {"prob": 1.0},
    "Grayscale": {"prob": 1.0},
    "RandomErasing": {"prob": 1.0},
    "RandAugment": {"prob": 1.0},
    "Speckle": {"density": 0.5},
    "StageSequence": {"stages": (HorizontalFlip(1.0), Invert())},
    "WithProb": {"prob": 0.9, "stage": Rotate()},
    "ChooseOne": {"stages": (Invert(), HorizontalFlip(1.0)), "weights": (1.0, 3.0)},
    "ColourJitter": {"hue": 0.3},
}
EVERY = {name: cls(**MADE.get(name, {})) for name, cls in EXPORTED.items()}
every_stage = pytest.mark.parametrize("stage", EVERY.values(), ids=EVERY)


@pytest.fixture(scope="module")
def images() -> Tensor:
    generator = torch.Generator().manual_seed(3)
    noise = torch.randint(0, 60, (12, 3, 20, 24), generator=generator)
    return (noise + torch.arange(24) * 6).to(torch.uint8)


def applied(stage: AugmentStage, images: Tensor, index: Tensor, seed: int = 0) -> Tensor:
    augment = Augmentation(stage, classes=12)
    return augment(images, index % 12, keys=sample_keys(seed, 1, index)).images


@every_stage
def test_it_is_data_that_survives_json(stage, tmp_path):
    document = json.loads(json.dumps(stage.to_plain()))
    assert document.keys() == {"name", "body"}
    assert AugmentStage.from_plain(document) == stage
    assert augment_stages()[stage.name] is type(stage)
    write_augmentation(stage, tmp_path / "stage.json")
    assert read_augmentation(tmp_path / "stage.json") == stage
    assert hash(stage) == hash(AugmentStage.from_plain(document))


@every_stage
def test_the_same_seed_gives_the_same_bits_and_another_one_others(stage, images):
    index = torch.arange(len(images))
    first = applied(stage, images, index)
    assert torch.equal(first, applied(stage, images, index))
    fixed = {"Invert", "AutoContrast", "Equalize", "NormalisePixels", "Grayscale", "Solarize",
             "Posterize", "HorizontalFlip", "VerticalFlip", "StageSequence"}  # fmt: skip
    if type(stage).__name__ not in fixed:
        assert not torch.equal(first, applied(stage, images, index, seed=5))


@every_stage
def test_a_sample_alone_is_what_it_is_in_a_batch(stage, images):
    index = torch.arange(len(images)) * 7919
    whole = applied(stage, images, index)
    if stage.mixes:
        # Of the sample half a batch before it, and of nothing else.
        other = 4 - len(images) // 2
        pair = applied(stage, images[[other, 4]], index[[other, 4]])
        assert torch.equal(pair[1], whole[4])
        return
    for place in (0, 5, 11):
        alone = applied(stage, images[place : place + 1], index[place : place + 1])
        assert torch.equal(alone[0], whole[place])
    turned = applied(stage, images.flip(0), index.flip(0))
    assert torch.equal(turned.flip(0), whole)


@every_stage
def test_shape_and_kind_stay_and_images_change(stage, images):
    index = torch.arange(len(images))
    for given in (images, images[:, :1].contiguous(), images.to(torch.float32) / 255):
        if isinstance(stage, NormalisePixels) and given.shape[1] == 1:
            continue
        before = given.clone()
        found = applied(stage, given, index)
        assert found.shape == given.shape
        expected = given.dtype
        if isinstance(stage, NormalisePixels) and not given.is_floating_point():
            expected = torch.float32
        assert found.dtype == expected
        assert torch.equal(given, before), "the images given must not change"
        assert torch.isfinite(found.to(torch.float32)).all()
        grey = given.shape[1] == 1 and type(stage).__name__ == "Grayscale"
        changed = (found != given).flatten(1).any(1).float().mean()
        assert grey or changed > 0.4, f"{changed:.0%} of the samples changed"


@every_stage
def test_bytes_and_floats_agree(stage, images):
    if isinstance(stage, RandomErasing):
        return  # noise of another kind, as it says
    index = torch.arange(len(images))
    ours = applied(stage, images, index).to(torch.float32)
    scale = 1.0 if isinstance(stage, NormalisePixels) else 255.0
    floats = applied(stage, images.to(torch.float32) / 255, index) * scale
    limit = 0.51 if isinstance(stage, MixUp) else 1e-3
    assert (ours - floats).abs().max() <= limit


def test_stages_were_found():
    assert len(EXPORTED) >= 28
    assert EXPORTED.keys() >= {"RandAugment", "TrivialAugment", "AugMix", "MixUp", "CutMix"}


@pytest.mark.parametrize(
    ("document", "text"),
    [
        ({"name": "rotat"}, "rotate"),
        ({"name": "rotate", "body": {"degree": 3}}, "degrees"),
        ({"name": "rotate", "body": {"degrees": "far"}}, "'far'"),
        ({"name": "rotate", "bdy": {}}, "bdy"),
        ({"name": "with_prob", "body": {"prob": 0.5}}, "`stage`"),
        ({"name": "pad_crop", "body": {"padding": -1}}, "-1"),
        ({"name": "pad_crop", "body": {"mode": "round"}}, "round"),
        ("rotate", "rotate"),
    ],
)
def test_a_wrong_document_is_refused_by_name(document, text):
    with pytest.raises(ArgumentError, match=text):
        AugmentStage.from_plain(document)


def test_a_stage_that_changes_the_kind_cannot_be_left_out_for_some(images):
    with pytest.raises(ArgumentError, match="cannot be applied to some"):
        applied(WithProb(0.5, NormalisePixels()), images, torch.arange(12))


def test_mixing_needs_the_number_of_classes(images):
    with pytest.raises(ArgumentError, match="classes=10"):
        Augmentation(MixUp())


@pytest.mark.parametrize("stage", [Grayscale(), ColourJitter(hue=0.1)])
def test_colours_need_three_channels(stage):
    images = torch.zeros(2, 4, 8, 8, dtype=torch.uint8)
    with pytest.raises(ArgumentError, match="have 4 channels"):
        Augmentation(stage)(images, keys=sample_keys(0, 0, torch.arange(2)))


def test_stages_at_the_end_leave_the_numbers_of_others_alone(images):
    index = torch.arange(len(images))
    short = applied(StageSequence((Rotate(),)), images, index)
    longer = applied(StageSequence((Rotate(), Invert())), images, index)
    assert torch.equal(255 - short, longer)


def test_probabilities_and_weights_are_kept():
    index = torch.arange(4000)
    images = torch.zeros(4000, 1, 1, 1, dtype=torch.uint8)
    with_prob = applied(WithProb(0.3, Invert()), images, index)
    assert abs((with_prob == 255).float().mean() - 0.3) < 0.03
    third = ChooseOne(
        (Invert(), Solarize((0.0, 0.0)), Translate(x=0.0, y=0.0)), (2.0, 0.0, 1.0), noop=1.0
    )
    assert abs((applied(third, images, index) == 255).float().mean() - 0.5) < 0.03
    flips = applied(HorizontalFlip(0.5), torch.arange(2).byte().expand(4000, 1, 1, 2), index)
    assert abs((flips[:, 0, 0, 0] == 1).float().mean() - 0.5) < 0.03


def test_mixing_mixes_targets_as_it_mixes_pixels():
    images = torch.arange(6, dtype=torch.float32).view(6, 1, 1, 1).expand(6, 1, 8, 8).clone()
    keys = sample_keys(0, 0, torch.arange(6))
    for stage in (MixUp(0.4), CutMix(1.0), ChooseOne((MixUp(0.8), CutMix(1.0)))):
        found = Augmentation(stage, classes=6)(images, torch.arange(6), keys=keys)
        assert found.targets is not None
        assert torch.allclose(found.targets.sum(1), torch.ones(6))
        # Every image is its class, so the mean pixel is the mean class.
        mean = found.images.mean((1, 2, 3))
        assert torch.allclose(mean, found.targets @ torch.arange(6.0), atol=1e-5)
        assert (found.targets.amax(1) < 1).any()


def test_a_sample_that_is_seen_repeatedly_is_not_mixed_with_itself():
    """Repeated augmentation puts the views of a sample side by side."""
    column = ColumnBatches(
        torch.zeros(12, 1, 8, 8, dtype=torch.uint8), torch.arange(12), 12, repeats=3
    )
    batch = column.batch(0)
    mixed = Augmentation(MixUp(1.0), classes=12)(
        batch.images, batch.labels, keys=batch.keys
    ).targets
    assert mixed is not None
    assert (mixed.amax(1) < 1).all()


def test_a_transformed_image_alternates_between_epochs():
    stage = hotgrid.vision.AlternateFlip()
    images = torch.arange(2, dtype=torch.uint8).expand(200, 1, 1, 2)
    index = torch.arange(200)
    seen = [
        Augmentation(stage)(images, keys=sample_keys(4, epoch, index)).images[:, 0, 0, 0]
        for epoch in range(4)
    ]
    assert torch.equal(seen[0], seen[2]) and torch.equal(seen[1], seen[3])
    assert (seen[0] != seen[1]).all()
    assert 60 < int(seen[0].sum()) < 140
