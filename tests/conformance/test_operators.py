"""What every operator must do. One enters by being registered with `@operator` in hotgrid."""

import dataclasses
import io
from typing import Any

import numpy as np
import pytest
from PIL import Image

from hotgrid import data
from hotgrid.data import (
    Cast,
    CentreCrop,
    ColumnType,
    DecodeCentreCrop,
    DecodeImage,
    DecodeRandomCrop,
    LabelEncode,
    Length,
    Normalise,
    Operator,
    Pad,
    RandomFlip,
    RandomResizedCrop,
    Resize,
    SampleDraws,
    Step,
    Tokenise,
    operators,
    set_encoder,
)

set_encoder("letters", lambda text: [ord(each) for each in text])
PIXELS = np.random.default_rng(0).integers(0, 256, (40, 50, 3), dtype=np.uint8)


def jpeg(pixels: np.ndarray = PIXELS, **options: Any) -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "JPEG", **options)
    return file.getvalue()


IMAGE = (ColumnType("uint8", (None, None, 3)), PIXELS)
FIXED = (ColumnType("uint8", (40, 50, 3)), PIXELS)
FILE = (ColumnType("bytes"), jpeg())
# Ways to use each operator: itself, and the types and values of its inputs.
USES: dict[str, list[tuple[Operator, dict[str, tuple[ColumnType, Any]]]]] = {
    "cast": [(Cast("float32"), {"value": FIXED}), (Cast("int16"), {"value": IMAGE})],
    "centre_crop": [(CentreCrop(8, 9), {"image": IMAGE})],
    "decode_centre_crop": [
        (DecodeCentreCrop(16, 16), {"data": FILE}),
        (DecodeCentreCrop(30, 9, share=1.0, reduce=False, fast=True), {"data": FILE}),
    ],
    "decode_image": [(DecodeImage(), {"data": FILE}), (DecodeImage(fast=True), {"data": FILE})],
    "decode_random_crop": [
        (DecodeRandomCrop(16, 17), {"data": FILE}),
        (DecodeRandomCrop(9, 8, area=(0.9, 1.0), reduce=False), {"data": FILE}),
    ],
    "label_encode": [(LabelEncode(("a", "b"), 7), {"name": (ColumnType("text"), "c")})],
    "length": [(Length(), {"value": FILE})],
    "normalise": [
        (Normalise(), {"image": FIXED}),
        (Normalise((0.5,), (0.25,)), {"image": FIXED}),
    ],
    "pad": [
        (Pad(50, 3.0), {"values": IMAGE}),
        (Pad(3), {"values": (ColumnType("int64", (None,)), np.arange(9))}),
    ],
    "random_flip": [
        (RandomFlip(), {"image": IMAGE}),
        (RandomFlip(1.0), {"image": FIXED}),
        (RandomFlip(0.0), {"image": FIXED}),
    ],
    "random_resized_crop": [(RandomResizedCrop(16, 17), {"image": IMAGE})],
    "resize": [(Resize(16, 17), {"image": IMAGE}), (Resize(40, 50), {"image": FIXED})],
    "tokenise": [(Tokenise("letters", (1, 2), 4), {"text": (ColumnType("text"), "hello")})],
}
CASES = [
    pytest.param(used, given, id=f"{name} {number}")
    for name, uses in USES.items()
    for number, (used, given) in enumerate(uses)
]
every_use = pytest.mark.parametrize(("used", "given"), CASES)


def run(used: Operator, given: dict[str, Any], key: int = 0, **more: Any) -> Any:
    if used.random:
        more["draws"] = SampleDraws(0, 1, key)
    return used.run(*(given[name][1] for name in used.inputs), **more)


def types(used: Operator, given: dict[str, Any]) -> dict[str, ColumnType]:
    return used.outputs({name: kind for name, (kind, _) in given.items()})


def test_every_operator_of_hotgrid_is_here():
    # Other packages, and examples of the docs, register theirs in the same process.
    own = {n for n, cls in operators().items() if getattr(data, cls.__name__, None) is cls}
    assert own == {*USES}
    assert all(used.name == name for name, uses in USES.items() for used, _ in uses)


@every_use
def test_what_it_makes_is_of_the_type_it_promises(used, given):
    (kind,) = types(used, given).values()
    made = run(used, given)
    assert kind.problem(made) is None
    if kind.dtype is not None and kind.shape:
        assert made.dtype == kind.dtype


@every_use
def test_its_inputs_are_taken(used, given):
    assert {*given} == {*used.inputs}
    assert all(ColumnType.of(used.inputs[n]).accepts(kind) for n, (kind, _) in given.items())


@every_use
def test_it_goes_through_a_step(used, given):
    step = Step(used.name, dict.fromkeys(given, "a"), dict.fromkeys(types(used, given), "b"))
    step = dataclasses.replace(step, config=used.config)
    assert step.build() == used


@every_use
def test_the_same_numbers_give_the_same_result(used, given):
    one, other = run(used, given, 3), run(used, given, 3)
    assert np.array_equal(one, other)


@every_use
def test_inputs_are_not_changed(used, given):
    before = {name: np.array(value) for name, (_, value) in given.items()}
    run(used, given)
    assert all(np.array_equal(before[name], value) for name, (_, value) in given.items())


@every_use
def test_what_is_written_to_a_slot_is_what_is_returned(used, given):
    (kind,) = types(used, given).values()
    if not used.fills or not kind.fixed:
        made = run(used, given)
        assert made is not None
        return
    slot = np.full((3, *kind.shape), 77, kind.dtype)
    made = run(used, given, out=slot[1])
    assert np.array_equal(made, run(used, given))
    assert (slot[[0, 2]] == 77).all()


@every_use
def test_its_docstring_explains_every_setting(used, given):
    text = type(used).__doc__ or ""
    assert all(f"        {field.name}: " in text for field in dataclasses.fields(used))
