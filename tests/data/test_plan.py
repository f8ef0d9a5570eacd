"""Plans as documents: types, graphs, JSON, and errors that name what is wrong."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from hotgrid.data import (
    ClassFolders,
    ColumnType,
    DecodeImage,
    DecodeRandomCrop,
    JsonLines,
    LabelEncode,
    Length,
    Normalise,
    Operator,
    Order,
    Plan,
    PlanBatches,
    Resize,
    SampleDraws,
    Source,
    Step,
    operator,
    operators,
    source,
)
from hotgrid.errors import ArgumentError

PHOTOS = Plan(ClassFolders("photos"))


def lines(place: Path, count: int = 5) -> JsonLines:
    text = "".join(json.dumps({"text": f"text {n}", "x": n}) + "\n" for n in range(count))
    (place / "a.jsonl").write_text(text)
    return JsonLines((str(place / "a.jsonl"),), {"text": "text", "x": "int64"})


kinds = st.sampled_from(["bool", "uint8", "int64", "float32"])
shapes = st.lists(st.none() | st.integers(0, 999), max_size=4).map(tuple)
column_types = st.builds(ColumnType, kinds, shapes) | st.sampled_from(
    [ColumnType("bytes"), ColumnType("text"), ColumnType("json"), ColumnType("any")]
)


@given(column_types)
def test_types_go_through_text(kind):
    assert ColumnType.of(str(kind)) == kind
    assert kind.accepts(kind)


@given(column_types, column_types, column_types)
def test_accepting_is_an_order(a, b, c):
    if a.accepts(b) and b.accepts(a):
        assert a == b
    if a.accepts(b) and b.accepts(c):
        assert a.accepts(c)


@pytest.mark.parametrize("text", ["uint9", "uint8[", "uint8[a]", "text[3]", "", "uint8[?]x"])
def test_a_wrong_type_is_named(text):
    with pytest.raises(ArgumentError, match=r"type|shape|size"):
        ColumnType.of(text)


def test_the_graph_shows_source_columns_types_and_steps():
    plan = PHOTOS.then(DecodeRandomCrop(8, 9, fast=True), "data", "pixels")
    plan = plan.then(Normalise(), "pixels", "floats").yielding("floats", "label")
    assert plan.graph().splitlines() == [
        "class_folders photos",
        "  data        bytes",
        "  path        text",
        "  label       int64",
        "  class_name  text",
        "pixels      uint8[8,9,3]    = decode_random_crop(data, height=8, width=9, fast=True)",
        "floats      float32[8,9,3]  = normalise(pixels)",
        "yields floats, label",
    ]


def test_a_plan_goes_through_json_and_a_file(tmp_path):
    plan = PHOTOS.then(DecodeImage(fast=True), "data", "image")
    plan = plan.then("resize", "image", "small", height=3, width=4).yielding("small", "label")
    plan = Plan(plan.source, plan.steps, plan.yields, Order(seed=7), "drop", 3)
    plan.write(tmp_path / "plan.json")
    again = Plan.read(tmp_path / "plan.json")
    assert again == plan
    assert again.fingerprint() == plan.fingerprint()
    assert again.types() == plan.types()


@given(
    st.builds(
        Order,
        seed=st.integers(-(2**63), 2**63),
        samples=st.none() | st.integers(1, 10**9),
    ),
    st.lists(st.integers(1, 10**4), max_size=5),
    st.sampled_from(["substitute", "drop", "raise"]),
)
def test_what_a_plan_holds_survives_json(order, sizes, corrupt):
    steps = [
        Step("resize", {"image": f"c{n}"}, {"image": f"c{n + 1}"}, {"height": size, "width": 1})
        for n, size in enumerate(sizes)
    ]
    plan = Plan(ClassFolders("p"), tuple(steps), ("a",), order, corrupt, len(sizes))
    assert Plan.from_json(plan.to_json()) == plan


def test_steps_may_be_in_any_order():
    plan = PHOTOS.then(DecodeImage(), "data", "image").then(Resize(4, 4), "image", "small")
    turned = Plan(plan.source, plan.steps[::-1])
    assert turned.types() == plan.types()
    assert turned.needed(["small"]) == plan.steps
    assert plan.needed(["image"]) == plan.steps[:1]
    assert plan.needed(["label"]) == ()


@pytest.mark.parametrize(
    ("add", "words"),
    [
        (lambda: PHOTOS.then(Resize(4, 4), "data", "x"), ["`resize`", "`data` is bytes"]),
        (lambda: PHOTOS.then(DecodeImage(), "dta", "x"), ["`dta`", "did you mean `data`"]),
        (lambda: PHOTOS.then("decode_imag", "data", "x"), ["`decode_image`"]),
        (lambda: PHOTOS.then(DecodeImage(), {"file": "data"}, "x"), ["no input `file`"]),
        (lambda: PHOTOS.then(DecodeImage(), {}, "x"), ["its input `data`"]),
        (lambda: PHOTOS.then(DecodeImage(), "data", {"img": "x"}), ["no output `img`"]),
        (lambda: PHOTOS.then(DecodeImage(), "data", "label"), ["`label`", "already"]),
        (lambda: PHOTOS.then(DecodeImage(), "data", "a b"), ["'a b'"]),
        (lambda: PHOTOS.then("resize", "data", "x", height=1), ["needs a value for `width`"]),
        (lambda: PHOTOS.then("resize", "data", "x", height=1, widht=1), ["`width`"]),
        (lambda: PHOTOS.then("decode_image", "data", "x", fast=1), ["`fast` is 1", "bool"]),
        (lambda: PHOTOS.then(Resize("a", 4), "data", "x"), ["`height` is 'a'"]),
        (lambda: PHOTOS.then(Length(), "label", "x"), ["`label`", "single number"]),
        (lambda: PHOTOS.then(Normalise(), "data", "x"), ["`data`", "channels"]),
        (lambda: PHOTOS.yielding("labels"), ["`labels`", "did you mean `label`"]),
        (lambda: PHOTOS.then(LabelEncode(("a", "a")), "class_name", "x"), ["`classes`"]),
    ],
    ids=[str(n) for n in range(16)],
)
def test_mistakes_are_named_when_the_plan_is_made(add, words):
    with pytest.raises(ArgumentError) as found:
        add()
    assert all(word in str(found.value) for word in words), str(found.value)


def test_an_error_of_types_names_column_operator_and_source():
    with pytest.raises(ArgumentError, match=r"`resize`.*`data`.*class_folders photos"):
        PHOTOS.then(Resize(4, 4), "data", "x")


def test_circles_and_columns_made_twice_are_refused():
    one = Step("resize", {"image": "b"}, {"image": "a"}, {"height": 1, "width": 1})
    two = Step("resize", {"image": "a"}, {"image": "b"}, {"height": 1, "width": 1})
    with pytest.raises(ArgumentError, match=r"`a`, `b`.*circle"):
        Plan(PHOTOS.source, (one, two))
    with pytest.raises(ArgumentError, match="`a` is made twice"):
        Plan(PHOTOS.source, (one, one))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"format": "hotgrid plan 2"}',
        '{"format": "hotgrid plan 1"}',
        '{"format": "hotgrid plan 1", "source": {"kind": "nowhere"}}',
        '{"format": "hotgrid plan 1", "source": {"kind": "class_folders", "root": 3}}',
        '{"format": "hotgrid plan 1", "source": {"kind": "class_folders"}}',
        '{"format": "hotgrid plan 1", "source": [], "steps": {}}',
        '{"format": "hotgrid plan 1", "source": {"kind": "class_folders", "root": "a"},'
        ' "steps": [{"operator": "resize", "inputs": {"image": 3}}]}',
        "[" * 100_000,
        '{"format": "hotgrid plan 1", "source": '
        + '{"kind": "selection", "of": ' * 400
        + '{"kind": "class_folders", "root": "a"}'
        + "}" * 401,
    ],
    ids=[str(n) for n in range(12)],
)
def test_what_is_not_a_plan_is_refused_and_the_file_named(text, tmp_path):
    path = tmp_path / "plan.json"
    path.write_text(text)
    with pytest.raises(ArgumentError, match=r"plan\.json"):
        Plan.read(path)


def test_lists_become_tuples():
    plan = Plan(PHOTOS.source, [], ["label"])
    assert plan == PHOTOS.yielding("label")
    with pytest.raises(ArgumentError, match="`yields` is a text"):
        Plan(PHOTOS.source, (), "label")


def test_reading_a_plan_never_follows_a_link(tmp_path):
    PHOTOS.write(tmp_path / "plan.json")
    (tmp_path / "link.json").symlink_to(tmp_path / "plan.json")
    with pytest.raises(ArgumentError, match="regular"):
        Plan.read(tmp_path / "link.json")


def test_a_function_becomes_an_operator(tmp_path):
    @operator(
        "tested_halves",
        inputs={"text": "text", "x": "int64"},
        outputs={"left": "text", "right": "text"},
    )
    def halves(text: str, x: int, *, mark: str = "|", draws: SampleDraws) -> tuple[str, str]:
        """Cut a text in two."""
        return f"{text[: len(text) // 2]}{mark}{draws.below(10**9)}", str(x)

    plan = Plan(lines(tmp_path), order=Order(shuffle=False)).then(
        "tested_halves",
        {"text": "text", "x": "x"},
        {"left": "a", "right": "b"},
        mark="!",
    )
    assert Plan.from_json(plan.to_json()) == plan
    with PlanBatches(plan, 5, epochs=2) as batches:
        first, second = batches
    assert first["b"] == ["0", "1", "2", "3", "4"] == second["b"]
    assert all(each.startswith("tex!") for each in first["a"])
    # Other numbers for every sample and every epoch.
    assert len({*first["a"], *second["a"]}) == 10
    assert operators()["tested_halves"].__doc__ == halves.__doc__


def test_a_name_is_given_once():
    @operator("tested_once", inputs={"x": "any"}, outputs={"y": "any"})
    def once(x):
        return x

    with pytest.raises(ArgumentError, match="`tested_once` is an operator already"):

        @operator("tested_once", inputs={"x": "any"}, outputs={"y": "any"})
        def again(x):
            return x

    with pytest.raises(ArgumentError, match="not a dataclass"):
        operator("tested_plain")(object)
    with pytest.raises(ArgumentError, match=r"takes \['x'\]"):
        operator("tested_types", inputs={"y": "any"}, outputs={"y": "any"})(once)


def test_other_packages_bring_operators_and_sources(tmp_path):
    (tmp_path / "guest_package.py").write_text(
        "from dataclasses import dataclass\n"
        "from hotgrid.data import ColumnType, Operator, Samples, Source, operator, source\n"
        "@operator('guest_twice', inputs={'x': 'int64'}, outputs={'y': 'int64'})\n"
        "def twice(x):\n    return 2 * x\n"
        "class Counting(Samples):\n"
        "    def __len__(self):\n        return 3\n"
        "    def read(self, index, columns):\n        return {'x': index}\n"
        "    def place(self, index):\n        return 'nowhere'\n"
        "@source('guest_count')\n"
        "@dataclass(frozen=True)\n"
        "class Count(Source):\n"
        "    def columns(self):\n        return {'x': ColumnType('int64')}\n"
        "    def open(self):\n        return Counting()\n"
    )
    info = tmp_path / "guest_package-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: guest-package\nVersion: 1\n")
    (info / "entry_points.txt").write_text(
        "[hotgrid.operators]\nguest_twice = guest_package:twice\n"
        "[hotgrid.sources]\nguest_count = guest_package:Count\n"
    )
    program = (
        "from hotgrid.data import Plan, PlanBatches, operators\n"
        'text = \'{"format": "hotgrid plan 1", "source": {"kind": "guest_count"},\'\n'
        'text += \'"steps": [{"operator": "guest_twice", "inputs": {"x": "x"},\'\n'
        'text += \'"outputs": {"y": "z"}}], "order": {"shuffle": false}}\'\n'
        "plan = Plan.from_json(text)\n"
        "print(next(PlanBatches(plan, 3))['z'].tolist())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "[0, 2, 4]\n", done.stderr


def test_splitmix_gives_the_published_numbers():
    # Of the reference implementation by Vigna, with the state 1234567.
    draws = SampleDraws()
    draws._state = 1234567
    assert [draws.bits() for _ in range(3)] == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
    ]


def test_draws_are_uniform_and_unrelated():
    found = [SampleDraws(0, 0, n).uniform() for n in range(4000)]
    assert abs(sum(found) / 4000 - 0.5) < 4 / (12 * 4000) ** 0.5
    assert min(found) >= 0
    assert max(found) < 1
    assert {SampleDraws(0, 0, n).below(7) for n in range(200)} == {*range(7)}
    assert SampleDraws(1, 2, 3).bits() != SampleDraws(3, 2, 1).bits()
    one, other = SampleDraws(5).generator(), SampleDraws(5).generator()
    assert (one.random(9) == other.random(9)).all()


def test_the_bases_are_abstract():
    for base in (Operator, Source):
        with pytest.raises(TypeError, match="abstract"):
            base()  # pyright: ignore[reportAbstractUsage]
    with pytest.raises(ArgumentError, match="`not a name`"):
        source("not a name")(type("Nameless", (Source,), {}))
