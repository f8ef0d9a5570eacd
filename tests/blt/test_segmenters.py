"""What single segmenters do: published rules and published figures."""

import json
import sys

import pytest
import torch
from hypothesis import given, strategies as st

from hotgrid.blt import (
    GRAMMARS,
    SEGMENTERS,
    SYNTAXES,
    AtMost,
    ByteModel,
    EntropyBudget,
    EntropyJump,
    EntropyStream,
    EntropyThreshold,
    EntropyThresholdAndJump,
    Router,
    Segmenter,
    Space,
    Static,
    Syntax,
    Tokens,
    calibrate_thresholds,
    segmenter,
)
from hotgrid.errors import ArgumentError, MissingPartError
from hotgrid.tokens import get_encoding, load_huggingface

# Entropies in nats that facebook/blt-entropy gives for a sentence of 79 bytes and its end, and
# where patches begin, from the fixture that is published with the model (rounded).
PUBLISHED = torch.tensor([
    3.3949, 2.1656, 2.3217, 2.8214, 1.5249, 0.0402, 0.0981, 0.0545, 0.3430, 1.0546, 0.2525,
    0.1495, 0.0625, 0.0014, 0.0050, 0.0052, 0.0012, 0.0010, 1.0241, 3.6868, 0.4502, 0.0484,
    2.2573, 0.3789, 1.0043, 2.9090, 1.8934, 1.3859, 0.3827, 0.2646, 1.7742, 0.0137, 0.0054,
    0.5486, 0.2064, 0.0049, 0.0005, 0.0007, 0.0004, 0.0055, 1.1938, 0.0238, 3.1280, 1.3883,
    3.0503, 1.6959, 1.8551, 1.4570, 0.0048, 0.0264, 0.6634, 0.3141, 2.8411, 1.1431, 0.0520,
    0.3398, 0.4140, 2.5564, 1.3371, 0.0227, 3.4447, 1.8576, 0.8190, 0.6777, 0.0678, 0.2127,
    0.1003, 0.1746, 0.4124, 0.5507, 0.1047, 0.0194, 0.0015, 0.0009, 0.0002, 0.0077, 0.0004,
    0.0008, 1.2395, 0.4564,
])  # fmt: skip
# In tokens after the beginning-of-sequence token, which is a patch of its own.
PUBLISHED_STARTS = [
    0, 1, 2, 3, 4, 5, 20, 23, 26, 27, 28, 31, 43, 44, 45, 46, 47, 48, 53, 58, 59, 61, 62
]  # fmt: skip
PUBLISHED_THRESHOLD = 1.335442066192627


class Fixed(ByteModel):
    """A model that says what it was told."""

    def __init__(self, entropies: torch.Tensor) -> None:
        self.values, self.thresholds = entropies, {}

    def entropies(self, data: bytes) -> torch.Tensor:
        return self.values[: len(data)]

    def stream(self) -> EntropyStream:
        raise NotImplementedError


FIXED = Fixed(PUBLISHED)
ALL = bytes(len(PUBLISHED))


def places(found: Segmenter, data: bytes = ALL) -> list[int]:
    return found.starts(data).nonzero()[:, 0].tolist()


def test_the_published_patch_starts():
    found = places(EntropyThreshold(FIXED, PUBLISHED_THRESHOLD))
    assert [0, *(each + 1 for each in found)] == PUBLISHED_STARTS
    assert (len(PUBLISHED) + 1) / (len(found) + 1) == pytest.approx(3.52, abs=0.005)


def test_the_published_patch_starts_by_transformers():
    from .peer import BltPatcher

    with_begin = torch.cat([PUBLISHED, torch.zeros(1)])[None]
    lengths = BltPatcher.patch_lengths_from_entropies(
        with_begin, len(PUBLISHED) + 1, 4, PUBLISHED_THRESHOLD
    )
    ours = EntropyThreshold(FIXED, PUBLISHED_THRESHOLD).lengths(ALL)
    assert lengths[0].tolist() == [1, *ours.tolist()]


def test_rules_by_their_definition():
    e = PUBLISHED.tolist()
    jump = [i for i in range(len(e)) if i < 2 or e[i] - e[i - 1] > 0.6]
    assert places(EntropyJump(FIXED, 0.6)) == jump
    both = [
        i for i in range(len(e)) if i < 2 or (i > 2 and e[i] > 1.0 and e[i] - e[i - 1] > 0.2)
    ]
    assert places(EntropyThresholdAndJump(FIXED, 1.0, jump=0.2)) == both
    highest = sorted(range(1, len(e)), key=lambda i: -e[i])[: 80 // 4 - 1]
    assert places(EntropyBudget(FIXED, 4.0)) == [0, *sorted(highest)]


def space_starts(data: bytes) -> list[int]:
    """The rule of SpaceByte, a byte at a time."""
    starts, before = [0] if data else [], True
    for i, byte in enumerate(data[:-1]):
        letter = chr(byte).isascii() and chr(byte).isalnum()
        like = not letter and not 0x80 <= byte < 0xC0
        if like and not before:
            starts.append(i + 1)
        before = like
    return starts


@given(st.one_of(st.binary(max_size=60), st.text("ab é.,\n世", max_size=30).map(str.encode)))
def test_space_against_a_loop(data: bytes):
    assert places(Space(), data) == space_starts(data)


def test_space_on_words():
    assert Space().patches(b"It's 3 words,  no?") == [
        b"It'", b"s ", b"3 ", b"words,", b"  no?",
    ]  # fmt: skip


@given(st.binary(max_size=50), st.integers(1, 9), st.integers(1, 9))
def test_longer_patches_are_split(data: bytes, size: int, most: int):
    wanted: list[int] = []
    for patch in Static(size).patches(data):
        whole, rest = divmod(len(patch), most)
        wanted += [most] * whole + [rest] * (rest > 0)
    assert AtMost(Static(size), most).lengths(data).tolist() == wanted


def test_sizes_may_be_longer_than_any_text():
    for rule in (Static(10**30), AtMost(Static(10**30), 10**30)):
        assert rule.patches(b"all of it") == [b"all of it"]


def test_tokens_are_those_of_the_encoding():
    encoding = get_encoding("hotgrid_32k")
    text = "Some tokens, naïve ones: 世界."
    wanted = encoding.decode_tokens_bytes(encoding.encode_ordinary(text))
    assert Tokens(encoding).patches(text.encode()) == wanted
    assert Tokens(encoding).patches(b"a\xff\xfeb") == [b"a", b"\xff", b"\xfe", b"b"]


def test_units_of_python():
    code = b'"""Doc."""\nimport os\n\n@wrap\ndef f():\n    return 1\n\n'
    code += b"class C:\n    x = 1; y = 2\n"
    assert Syntax().patches(code) == [
        b'"""Doc."""\n', b"import os\n\n", b"@wrap\ndef f():\n    return 1\n\n",
        b"class C:\n    ", b"x = 1; ", b"y = 2\n",
    ]  # fmt: skip
    marked = b"\xef\xbb\xbfx = 1; y = 2\nz = 3; w = 4"
    assert Syntax().patches(marked) == [
        b"\xef\xbb\xbfx = 1; ",
        b"y = 2\n",
        b"z = 3; ",
        b"w = 4",
    ]
    latin = b"# coding: latin-1\ns = '\xe9\xe9'; t = 1\n"
    assert Syntax().patches(latin) == [b"# coding: latin-1\n", b"s = '\xe9\xe9'; ", b"t = 1\n"]
    assert Syntax().patches(b"def f(:") == [b"def f(:"]
    assert Syntax().patches(b"\x00\xff") == [b"\x00\xff"]


RUST = b"""//! The file.
use std::io;

/// One.
#[derive(Debug)]
struct A;
impl A {
    /// Two.
    fn f() {}
    fn g() {}
}
mod m { fn h() {} }
// The end.
"""
C = b"""#ifndef A_H
#define A_H
/* One. */
static int x;
// Two,
// three.
int f(void) { return 0; }
extern "C" { int g(void); int h(void); }
#endif
"""
JAVASCRIPT = b"""import a from "b";
/** One. */
class A { x = 1; f() { return 1 } }
export class B { g() {} }
function k() { class C { h() {} } }
"""


@pytest.mark.parametrize(
    ("language", "code", "units"),
    [
        (
            "rust",
            RUST,
            [
                b"//! The file.\nuse std::io;\n\n", b"/// One.\n#[derive(Debug)]\nstruct A;\n",
                b"impl A {\n    ", b"/// Two.\n    fn f() {}\n    ", b"fn g() {}\n}\n",
                b"mod m { ", b"fn h() {} }\n", b"// The end.\n",
            ],
        ),
        (
            "c",
            C,
            [
                b"#ifndef A_H\n", b"#define A_H\n", b"/* One. */\nstatic int x;\n",
                b"// Two,\n// three.\nint f(void) { return 0; }\n", b'extern "C" { ',
                b"int g(void); ", b"int h(void); }\n#endif\n",
            ],
        ),
        (
            "javascript",
            JAVASCRIPT,
            [
                b'import a from "b";\n', b"/** One. */\nclass A { ", b"x = 1; ",
                b"f() { return 1 } }\n", b"export class B { ", b"g() {} }\n",
                b"function k() { class C { h() {} } }\n",
            ],
        ),
    ],
    ids=["rust", "c", "javascript"],
)  # fmt: skip
def test_units_by_grammars(language: str, code: bytes, units: list[bytes]):
    assert Syntax(language).patches(code) == units
    # What cannot be parsed is cut somewhere, and nothing of it is lost.
    for end in range(0, len(code), 7):
        assert b"".join(Syntax(language).patches(code[:end])) == code[:end]


def test_a_grammar_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "tree_sitter_go", None)
    with pytest.raises(MissingPartError, match="pip install tree-sitter tree-sitter-go"):
        Syntax("go")
    with pytest.raises(MissingPartError, match="tree-sitter-go"):
        segmenter("go")


def test_calibrated_thresholds_give_their_means():
    torch.manual_seed(0)
    model = Fixed(torch.randn(40_000).exp())
    data = bytes(40_000)
    model.thresholds = calibrate_thresholds(model, [data])
    for size in (3, 4, 4.5, 6, 8):
        for kind in (EntropyThreshold, EntropyJump):
            found = kind(model, size=size).lengths(data).double().mean().item()
            assert found == pytest.approx(size, rel=0.01)
    with pytest.raises(ArgumentError, match="no `threshold` threshold for patches of 5 bytes"):
        EntropyThreshold(model, size=5)
    for few in ([], [b""], [b"a", b"b"]):
        with pytest.raises(ArgumentError, match="too few bytes"):
            calibrate_thresholds(model, few)


def test_the_router_compares_neighbours():
    router = Router(3)
    x = torch.tensor([[[1.0, 0, 0], [2.0, 0, 0], [-1.0, 0, 0], [0, 3.0, 0]]])
    assert router(x)[0].tolist() == pytest.approx([1, 0, 1, 0.5])
    assert router(x[:, 2:], x[:, 1:2])[0].tolist() == pytest.approx([1, 0.5])
    # The loss is lowest, 1, where the share is one in four.
    right = torch.tensor([[1.0, 0.0, 0.0, 0.0]])
    assert router.ratio_loss(right, 4).item() == pytest.approx(1)
    for p in (torch.ones(1, 4), torch.zeros(1, 4)):
        assert router.ratio_loss(p, 4).item() > 1.2
    with pytest.raises(ArgumentError, match="above 1 byte"):
        router.ratio_loss(right, 1)


def test_all_names_make_one():
    assert set(SYNTAXES) == set(GRAMMARS)
    others = {name for name, each in GRAMMARS.items() if not each.extra}
    for name in sorted(set(SEGMENTERS) - others):
        assert b"".join(segmenter(name).patches(b"x = 1\ny = 2\n")) == b"x = 1\ny = 2\n"
    assert segmenter("static", size=5) == Static(5)
    assert segmenter("space", most=3) == AtMost(Space(), 3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "spaces"}, "did you mean `space`"),
        ({"name": "space", "threshold": 1.0}, "takes no threshold"),
        ({"name": "tokens", "size": 3}, "takes no size"),
        ({"name": "static", "size": 2.5}, "an integer size"),
        ({"name": "static", "size": 0}, "from 1"),
        ({"name": "budget", "size": 0.5}, "from 1 byte"),
        ({"name": "threshold", "size": 77}, "no `threshold` threshold"),
        ({"name": "space", "most": 0}, "`length` is 0"),
    ],
)
def test_wrong_choices_say_what_is_wrong(arguments: dict, message: str):
    with pytest.raises(ArgumentError, match=message):
        segmenter(**arguments)


def test_unknown_syntaxes_and_normalising_encodings_are_refused(tmp_path):
    with pytest.raises(ArgumentError, match=r"there is no syntax for `pyton`.*`python`"):
        Syntax("pyton")
    file = tmp_path / "tokenizer.json"
    level = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True}
    whole = {
        "version": "1.0",
        "normalizer": {"type": "NFC"},
        "pre_tokenizer": level,
        "decoder": {"type": "ByteLevel"},
        "model": {"type": "BPE", "vocab": _byte_vocabulary(), "merges": []},
    }
    file.write_text(json.dumps(whole))
    with pytest.raises(ArgumentError, match="normalises texts"):
        Tokens(load_huggingface(file))


def _byte_vocabulary() -> dict[str, int]:
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    rest = [byte for byte in range(256) if byte not in shown]
    letters = {byte: chr(byte) for byte in shown}
    letters |= {byte: chr(256 + i) for i, byte in enumerate(rest)}
    return {letters[byte]: byte for byte in range(256)}
