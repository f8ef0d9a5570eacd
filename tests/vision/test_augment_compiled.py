"""Whole recipes as one compiled function."""

import pytest
import torch

from hotgrid.vision import (
    Augmentation,
    AugMix,
    BatchDraws,
    ChooseOne,
    ColourJitter,
    GaussianBlur,
    HorizontalFlip,
    ImageBatch,
    NormalisePixels,
    PadCrop,
    StageSequence,
    TrivialAugment,
    WithProb,
    find_recipe,
    sample_keys,
)

SWIN = find_recipe("small-swin")
OTHERS = StageSequence(
    (
        WithProb(0.5, ColourJitter(hue=0.2)),
        ChooseOne((TrivialAugment(), GaussianBlur(), AugMix(width=2, depth=1)), noop=1.0),
    )
)
STAGES = {
    "small-swin": StageSequence((SWIN.augment, NormalisePixels(), SWIN.after)),
    "others": StageSequence((OTHERS, NormalisePixels())),
}


def batch() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    images = torch.randint(0, 256, (16, 3, 32, 32), generator=generator, dtype=torch.uint8)
    return images, torch.arange(16) % 10, sample_keys(0, 0, torch.arange(16))


@pytest.mark.long
@pytest.mark.parametrize("stage", STAGES.values(), ids=STAGES)
def test_a_recipe_is_one_graph(stage):
    """Dynamo traces all of it, without a break, to what it computes otherwise."""

    def function(images, targets, keys):
        return stage.apply(ImageBatch(images, targets), BatchDraws(keys))

    images, labels, keys = batch()
    shares = torch.nn.functional.one_hot(labels, 10).float()
    traced = torch.compile(function, fullgraph=True, backend="eager")
    found, wanted = traced(images, shares, keys), function(images, shares, keys)
    assert torch.equal(found.images, wanted.images)
    assert torch.equal(found.targets, wanted.targets)


@pytest.mark.compiles
@pytest.mark.long
def test_compiled_is_what_it_is_eager():
    # Policies take many minutes to compile on a CPU; bench_augment.py compares them on a GPU.
    plain = (PadCrop(4), HorizontalFlip(), ColourJitter(hue=0.2), GaussianBlur())
    stage = StageSequence((*plain, NormalisePixels(), SWIN.after))
    images, labels, keys = batch()
    eager = Augmentation(stage, classes=10)(images, labels, keys=keys)
    compiled = Augmentation(stage, classes=10, compiled=True)
    found = compiled(images, labels, keys=keys)
    # A fused multiply-add may fall on the other side of a whole number: one level of 255, and
    # in a few pixels, where a later operation is steep there, more.
    apart = (found.images - eager.images).abs()
    assert (apart > 1.1 / 255 / 0.224).float().mean() < 2e-3
    if eager.targets is not None:
        assert torch.allclose(found.targets.float(), eager.targets.float(), atol=1e-6)
