"""Operations against Pillow, or against their published definition."""

import numpy as np
import pytest
import torch
from PIL import Image, ImageEnhance, ImageOps
from torch import Tensor

from hotgrid.vision import (
    Augmentation,
    AugmentStage,
    AutoContrast,
    BatchDraws,
    ColourJitter,
    Cutout,
    Equalize,
    GaussianBlur,
    Grayscale,
    Invert,
    NormalisePixels,
    PadCrop,
    Posterize,
    RandAugment,
    RandomErasing,
    Rotate,
    Sharpness,
    Shear,
    Solarize,
    Speckle,
    Translate,
    sample_keys,
)

AFFINE = Image.Transform.AFFINE
RESAMPLING = {
    "nearest": Image.Resampling.NEAREST,
    "bilinear": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
}
COUNT = 10


def pictures() -> Tensor:
    """Noise, gradients, a flat channel, a photo-like one; 37 by 45 pixels."""
    generator = torch.Generator().manual_seed(1)
    found = torch.randint(0, 256, (COUNT, 3, 37, 45), generator=generator, dtype=torch.uint8)
    found[4:7] = found[4:7] // 8 + torch.arange(45, dtype=torch.uint8) * 4
    found[7, 0] = 7
    found[8:] = found[8:] // 2 + 40
    return found


PICTURES = pictures()
KEYS = sample_keys(0, 0, torch.arange(COUNT))


def made(stage: AugmentStage) -> Tensor:
    return Augmentation(stage)(PICTURES, keys=KEYS).images


def pillow(function, *arguments: Tensor) -> Tensor:
    """A function of Pillow applied to every picture, with its arguments."""
    rows = zip(PICTURES, *arguments, strict=True) if arguments else ((x,) for x in PICTURES)
    found = []
    for image, *numbers in rows:
        shown = Image.fromarray(image.permute(1, 2, 0).numpy())
        found.append(np.array(function(shown, *(float(each) for each in numbers))))
    return torch.from_numpy(np.stack(found)).permute(0, 3, 1, 2)


def apart(ours: Tensor, theirs: Tensor) -> Tensor:
    return (ours.to(torch.int32) - theirs.to(torch.int32)).abs()


@pytest.mark.parametrize(
    ("stage", "function"),
    [
        (Invert(), ImageOps.invert),
        (AutoContrast(), ImageOps.autocontrast),
        (Equalize(), ImageOps.equalize),
        (Posterize((3, 3)), lambda image: ImageOps.posterize(image, 3)),
        (Solarize((77.0, 77.0)), lambda image: ImageOps.solarize(image, 77)),
        (Sharpness((1.75, 1.75)), lambda image: ImageEnhance.Sharpness(image).enhance(1.75)),
        (Sharpness((0.25, 0.25)), lambda image: ImageEnhance.Sharpness(image).enhance(0.25)),
        (Grayscale(1.0), lambda image: image.convert("L").convert("RGB")),
    ],
    ids=lambda each: type(each).__name__,
)
def test_tones_are_pillows_to_the_bit(stage, function):
    assert torch.equal(made(stage), pillow(function))


@pytest.mark.parametrize(
    ("setting", "enhance"),
    [
        ("brightness", ImageEnhance.Brightness),
        ("contrast", ImageEnhance.Contrast),
        ("saturation", ImageEnhance.Color),
    ],
)
def test_jitter_is_image_enhance_to_the_bit(setting, enhance):
    off = dict.fromkeys(("brightness", "contrast", "saturation"), 0.0)
    ours = made(ColourJitter(**{**off, setting: 0.9}))
    draws = BatchDraws(KEYS)
    # Factors are drawn in this order, also those that are 1.
    drawn = {name: draws.uniform(low=0.1, high=1.9) for name in off}
    assert torch.equal(ours, pillow(lambda x, a: enhance(x).enhance(a), drawn[setting]))


def test_hue_is_pillows_hsv():
    ours = made(ColourJitter(0.0, 0.0, 0.0, hue=0.5))
    draws = BatchDraws(KEYS)
    for _ in range(3):
        draws.uniform()
    turn = draws.uniform(low=-0.5, high=0.5)

    def turned(image: Image.Image, share: float) -> Image.Image:
        h, s, v = image.convert("HSV").split()
        moved = (np.array(h).astype(int) + int(np.float32(share) * np.float32(255))) & 255
        return Image.merge("HSV", (Image.fromarray(moved.astype(np.uint8)), s, v)).convert(
            "RGB"
        )

    difference = apart(ours, pillow(turned, turn))
    # A hue that falls on a whole number may be cut to the one below.
    assert (difference > 0).float().mean() < 2e-3
    assert difference.max() <= 6


@pytest.mark.parametrize("name", RESAMPLING)
@pytest.mark.parametrize("kind", ["rotate", "shear", "translate"])
def test_affine_maps_are_image_transform(kind, name):
    fill, how = (1, 2, 3), RESAMPLING[name]
    options = {"interpolation": name, "fill": fill}
    draws = BatchDraws(KEYS)
    if kind == "rotate":
        ours = made(Rotate(degrees=70.0, **options))
        angle = draws.uniform(low=-70.0, high=70.0)
        theirs = pillow(lambda x, a: x.rotate(a, how, fillcolor=fill), angle)
    elif kind == "shear":
        ours = made(Shear(x=0.6, y=0.0, **options))
        slope = draws.uniform(low=-0.6, high=0.6)
        theirs = pillow(
            lambda x, a: x.transform(x.size, AFFINE, (1, a, 0, 0, 1, 0), how, fillcolor=fill),
            slope,
        )
    else:
        ours = made(Translate(x=0.0, y=0.4, **options))
        most = 0.4 * PICTURES.shape[2]
        shift = draws.uniform(low=-most, high=most)
        theirs = pillow(
            lambda x, a: x.transform(x.size, AFFINE, (1, 0, 0, 0, 1, a), how, fillcolor=fill),
            shift,
        )
    difference = apart(ours, theirs)
    # Pillow computes in float64 and cuts fractions off; nearest is in fixed point.
    assert difference.max() <= (0 if name == "nearest" else 1)
    assert (difference > 0).float().mean() < 5e-3


def test_blur_is_a_gaussian_with_mirrored_edges():
    ours = made(GaussianBlur((1.3, 1.3), radius=3))
    place = np.arange(-3, 4)
    weights = np.exp(-0.5 * (place / 1.3) ** 2)
    weights /= weights.sum()
    padded = np.pad(PICTURES.numpy().astype(float), ((0, 0), (0, 0), (3, 3), (3, 3)), "reflect")
    expected = np.zeros(PICTURES.shape)
    for y in range(7):
        for x in range(7):
            shifted = padded[:, :, y : y + 37, x : x + 45]
            expected += weights[y] * weights[x] * shifted
    difference = np.abs(ours.numpy() - expected)
    assert difference.max() <= 0.5 + 1e-3


@pytest.mark.parametrize("mode", ["reflect", "zero", "edge"])
def test_a_padded_crop_is_numpys_pad_and_a_slice(mode):
    ours = made(PadCrop(5, mode))
    draws = BatchDraws(KEYS)
    down, right = draws.below(11).tolist(), draws.below(11).tolist()
    kind = {"reflect": "reflect", "zero": "constant", "edge": "edge"}[mode]
    padded = np.pad(PICTURES.numpy(), ((0, 0), (0, 0), (5, 5), (5, 5)), kind)
    for at in range(COUNT):
        expected = padded[at, :, down[at] : down[at] + 37, right[at] : right[at] + 45]
        assert np.array_equal(ours[at].numpy(), expected)
    assert len({*down}) > 3


def test_erased_rectangles_have_the_published_sizes():
    images = torch.full((2000, 1, 32, 32), 9, dtype=torch.uint8)
    keys = sample_keys(0, 0, torch.arange(2000))
    stage = RandomErasing(prob=0.5, mode="const", area=(0.1, 0.3), aspect=(0.5, 2.0))
    gone = Augmentation(stage)(images, keys=keys).images[:, 0] == 0
    hit = gone.flatten(1).any(1)
    assert abs(hit.float().mean() - 0.5) < 0.04
    tall, wide = gone.any(2).sum(1)[hit], gone.any(1).sum(1)[hit]
    area = gone.flatten(1).sum(1)[hit]
    assert torch.equal(area, tall * wide), "one whole rectangle"
    share = area / 1024
    assert share.min() > 0.07 and share.max() < 0.34
    assert abs(share.mean() - 0.2) < 0.01
    ratio = (tall / wide).log()
    assert abs(ratio.mean()) < 0.05 and ratio.abs().max() < 0.85


def test_cutout_is_a_square_about_a_pixel():
    images = torch.full((500, 1, 16, 16), 9, dtype=torch.uint8)
    keys = sample_keys(1, 0, torch.arange(500))
    gone = Augmentation(Cutout(6))(images, keys=keys).images[:, 0] == 0
    tall, wide = gone.any(2).sum(1), gone.any(1).sum(1)
    assert torch.equal(gone.flatten(1).sum(1), tall * wide)
    assert tall.max() == 6 and tall.min() == 3, "cut at the border"


def test_speckle_takes_pixels_of_the_same_image():
    ours = made(Speckle(0.3))
    for before, after in zip(PICTURES, ours, strict=True):
        known = {tuple(each) for each in before.flatten(1).T.tolist()}
        assert {tuple(each) for each in after.flatten(1).T.tolist()} <= known
    moved = (ours != PICTURES).any(1).float().mean()
    assert 0.2 < moved < 0.32


def test_normalising_is_the_formula():
    mean, std = (0.1, 0.2, 0.3), (0.4, 0.5, 0.6)
    ours = made(NormalisePixels(mean, std)).double()
    wanted = PICTURES.double() / 255 - torch.tensor(mean).double()[:, None, None]
    wanted /= torch.tensor(std).double()[:, None, None]
    assert torch.allclose(ours, wanted, rtol=0, atol=1e-5)


# Of timm's `rand-m9-mstd0.5-inc1` at level 9, in Pillow's terms; signs are drawn.
RAND = {
    "autocontrast": lambda x, s: ImageOps.autocontrast(x),
    "equalize": lambda x, s: ImageOps.equalize(x),
    "invert": lambda x, s: ImageOps.invert(x),
    "rotate": lambda x, s: x.rotate(s * 27, Image.Resampling.NEAREST, fillcolor=(1, 2, 3)),
    "posterize": lambda x, s: ImageOps.posterize(x, 1),
    "solarize": lambda x, s: ImageOps.solarize(x, 26),
    "solarize_add": lambda x, s: x.point([i + 99 if i < 128 else i for i in range(256)] * 3),
    "colour": lambda x, s: ImageEnhance.Color(x).enhance(1 + s * 0.81),
    "contrast": lambda x, s: ImageEnhance.Contrast(x).enhance(1 + s * 0.81),
    "brightness": lambda x, s: ImageEnhance.Brightness(x).enhance(1 + s * 0.81),
    "sharpness": lambda x, s: ImageEnhance.Sharpness(x).enhance(1 + s * 0.81),
    "shear_x": lambda x, s: moved(x, (1, s * 0.27, 0, 0, 1, 0)),
    "shear_y": lambda x, s: moved(x, (1, 0, 0, s * 0.27, 1, 0)),
    "translate_x": lambda x, s: moved(x, (1, 0, s * 0.405 * x.size[0], 0, 1, 0)),
    "translate_y": lambda x, s: moved(x, (1, 0, 0, 0, 1, s * 0.405 * x.size[1])),
}


def moved(image: Image.Image, matrix) -> Image.Image:
    return image.transform(
        image.size, AFFINE, matrix, Image.Resampling.NEAREST, fillcolor=(1, 2, 3)
    )


def test_randaugment_has_timms_operations_and_strengths():
    """Every result is one of the 30 of its definition, and all of these come up."""
    image = PICTURES[5]
    shown = Image.fromarray(image.permute(1, 2, 0).numpy())
    wanted = {
        (name, sign): torch.from_numpy(np.array(function(shown, sign))).permute(2, 0, 1)
        for name, function in RAND.items()
        for sign in (-1, 1)
    }
    stage = RandAugment("nearest", (1, 2, 3), layers=1, magnitude=9.0, std=0.0, prob=1.0)
    keys = sample_keys(0, 0, torch.arange(400))
    ours = Augmentation(stage)(image.expand(400, -1, -1, -1), keys=keys).images
    seen = dict.fromkeys(RAND, 0)
    for each in ours:
        # Factors in float32 and in Python may fall on two sides of a whole number.
        near = [
            name
            for (name, _), target in wanted.items()
            if apart(each, target).max() <= 1 or (apart(each, target) > 1).float().mean() < 0.01
        ]
        assert near
        seen[near[0]] += 1
    assert min(seen.values()) >= 10


def test_random_numbers_are_of_their_distributions():
    draws = BatchDraws(sample_keys(7, 3, torch.arange(20000)))
    uniform = draws.uniform()
    assert uniform.min() >= 0 and uniform.max() < 1
    counts = torch.histc(uniform, 20, 0, 1) - 1000
    assert (counts.square().sum() / 1000) < 45, "chi square, 19 degrees of freedom"
    normal = draws.normal()
    assert abs(normal.mean()) < 0.03 and abs(normal.std() - 1) < 0.02
    for alpha in (0.2, 0.8, 1.0, 3.0):
        beta = draws.beta(alpha).double()
        assert abs(beta.mean() - 0.5) < 0.01
        assert abs(beta.var() - 1 / (4 * (2 * alpha + 1))) < 0.004
        reference = np.sort(np.random.default_rng(0).beta(alpha, alpha, 20000))
        assert np.abs(np.sort(beta.numpy()) - reference).max() < 0.03
    assert torch.bincount(draws.below(7), minlength=7).min() > 2600
    grid = draws.uniform(4, 5)
    assert abs(np.corrcoef(grid.flatten(1).T.numpy())[0, 1:]).max() < 0.03
