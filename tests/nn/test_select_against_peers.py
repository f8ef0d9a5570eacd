"""Expressions select what lxml (XPath 1.0) and elementpath (2.0) select from the XML dump."""

import re
from functools import cache
from xml.etree import ElementTree

import elementpath
import pytest
from hypothesis import assume, given, strategies as st
from lxml import etree
from torch import nn

from hotgrid.errors import ArgumentError
from hotgrid.nn import Node, select, tree


class Block(nn.Module):
    def __init__(self, bias: bool = True):
        super().__init__()
        self.norm = nn.LayerNorm(4)
        self.attn = nn.ModuleDict({"c_q": nn.Linear(4, 4, bias), "c_k": nn.Linear(4, 2, bias)})
        self.mlp = nn.Sequential(nn.Linear(4, 8, bias), nn.GELU(), nn.Linear(8, 4, bias))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(nn.Linear(1, 3).bias.detach(), requires_grad=False)
        self.wte = nn.Embedding(5, 4)
        self.h = nn.ModuleList([Block(), Block(bias=False), Block()])
        self.lm_head = nn.Linear(4, 5)


class GptHost(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = GPT()


@cache
def forest() -> dict[str, nn.Module]:
    return {"Linear": nn.Linear(2, 3), "GPT": GPT(), "GptHost": GptHost()}


# Every expression of the facts, and what the grammar has besides. An expression of an
# XPath engine begins at the document, so it is the same with a slash in front.
EXPRESSIONS = """
Linear | *
Linear/*[@name='weight']
Linear/*[2]
*//Linear
*/*[3]
descendant-or-self::Param[@rank=2]
*/*[@name='weight'][@rank=2]
GPT/Linear
GPT/Linear/descendant-or-self::Param
GptHost/GPT/*[@name='wte']
GptHost/GPT/*[@name='lm_head']
GPT/*[@name='h']//Linear/*[@name='weight'][@rank=2]
//Linear
//Linear[1]
/descendant::Linear[1]
(//Linear)[last()]
(//Linear)[position()<=2]/Param
//Linear[last()]/Param[last()]
//Block[2]//Param[@rank>1]
//Block[@index>=1 and @index<=2]/*[@name='mlp']/Linear
//Param[@shape='4 4' or @rank=1]
//Param[not(@rank=1)]
//Param[@rank!=1]
//Linear[not(*[@name='bias'])]
//*[@name]
//*[not(@name)]
//Param[contains(@path,'mlp')]
//Param[starts-with(@path,'h.1')]
//Block/..
//Param/../..
//Param/parent::Linear
//Param/ancestor::Block[1]
//Param/ancestor::*[last()]
//Param/ancestor-or-self::*[2]
//LayerNorm/following-sibling::*
//LayerNorm/following-sibling::*[1]
//Sequential/preceding-sibling::*[1]
//Sequential/preceding-sibling::*
//GELU/following::Param
//GELU/preceding::Param[1]
//GELU/preceding::*[@rank=2][position() mod 2 = 1]
//Linear/self::Linear
//Linear/self::Embedding
//*[Param/@rank=2]
//*[count(Param)=2]
//*[count(Param)=2]/Param[2]
//*[.//GELU]
//*[../@name='h']
//Param[@rank=../following-sibling::*/Param/@rank]
//Param[@size>16]
//Param[@size div 4 = 1]
//Param[-@rank < -1]
//Param[@size*2-@rank+1 = 31]
//Param[string-length(@name)>4]
//*[name()='Linear']
//*[name(Param[1])='Param']
//*[concat(@name,'!')='h!']
//Param[@trainable='false']
//Param[@dtype='float32'][@name='scale']
//*[@*='h']
//Block[position()=1 or position()=last()]
//Block[last()-1]
//Param[@rank='2']
//Param[@rank < @size]
//Linear | //Embedding | //Linear
(//Linear | //Embedding)[2]
//Linear/descendant-or-self::*
//*//*//Param
.//Linear
/GPT
/*
//.
//..
//Param[true()][position()=1]
//Param[1=1][2]
//Param[number(@rank)=2 and boolean(@name)]
""".strip().splitlines()


def absolute(expression: str) -> str:
    """The same for an engine whose context is the root element."""
    parts = [part.strip() for part in expression.split(" | ")] if "(" not in expression else []
    if len(parts) > 1:
        return " | ".join(map(absolute, parts))
    return expression if expression[0] in "/(" else f"/{expression}"


def by_lxml(xml: str, expression: str) -> list[int]:
    document = etree.ElementTree(etree.fromstring(xml))
    orders = {each: i for i, each in enumerate(document.getroot().iter(), 1)}
    found = document.xpath(absolute(expression))
    return [orders[each] for each in found if isinstance(each, etree._Element)]


def by_elementpath(xml: str, expression: str) -> list[int]:
    document = ElementTree.ElementTree(ElementTree.fromstring(xml))
    orders = {each: i for i, each in enumerate(document.getroot().iter(), 1)}
    found = elementpath.select(document, absolute(expression))
    # Not always in document order, so lxml alone judges the order.
    return sorted({orders[each] for each in found if each in orders})


def selected(module: nn.Module, expression: str) -> list[int]:
    try:
        found = select(module, expression)
    except ArgumentError as error:
        assert "selects nothing" in str(error)
        return []
    return [node.order for node in found]


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_expressions_select_what_peers_select(expression: str):
    matched = 0
    for module in forest().values():
        xml = tree(module).xml()
        ours = selected(module, expression)
        assert ours == by_lxml(xml, expression)
        assert ours == by_elementpath(xml, expression)
        matched += len(ours)
    assert matched or expression == "//Linear/self::Embedding"


@pytest.mark.parametrize(
    "expression",
    [
        "//Param[ends-with(@path, 'c_q.weight')]",
        r"//Param[matches(@path, 'h\.[02]\..*weight$')]",
        "//*[matches(@name, '^(mlp|attn)$')]",
        "//Linear[not(matches(@path, '^h'))]",
    ],
)
def test_what_is_of_xpath_2_selects_what_elementpath_selects(expression: str):
    module = GPT()
    found = by_elementpath(tree(module).xml(), expression)
    assert selected(module, expression) == found
    assert found


# A grammar of expressions: types, axes and predicates over random trees.
TYPES = ("Linear", "Sequential", "ModuleDict", "ReLU", "Param", "ModuleList")
AXES = (
    *("child", "descendant", "descendant-or-self", "self", "parent", "ancestor"),
    *("ancestor-or-self", "following-sibling", "preceding-sibling", "following", "preceding"),
)
NAMES = ("weight", "bias", "a", "b")


@st.composite
def modules(draw, depth: int = 3) -> nn.Module:
    leaves = st.sampled_from(
        [lambda: nn.Linear(2, 3), lambda: nn.Linear(3, 2, bias=False), nn.ReLU]
    )
    if depth == 0 or draw(st.integers(0, 3)) == 0:
        return draw(leaves)()
    children = draw(st.lists(modules(depth - 1), max_size=3))
    kind = draw(st.sampled_from(["Sequential", "ModuleList", "ModuleDict"]))
    if kind == "ModuleDict":
        return nn.ModuleDict(dict(zip("abc", children, strict=False)))
    return nn.Sequential(*children) if kind == "Sequential" else nn.ModuleList(children)


numbers = st.integers(0, 4).map(str) | st.sampled_from(["last()", "position()", "1.5"])
numeric = st.one_of(
    numbers,
    st.sampled_from(["@rank", "@index", "@size", "count(*)", "count(.//Param)"]),
    st.tuples(numbers, st.sampled_from(["+", "-", "*", "mod", "div"]), numbers).map(" ".join),
    st.just("count(../*[2])"),
)
strings = st.sampled_from(
    ["@name", "@path", "@shape", "name()", "'Linear'", *(f"'{name}'" for name in NAMES)]
)
comparisons = st.sampled_from(["=", "!=", "<", "<=", ">", ">="])


def predicates(paths: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    simple = st.one_of(
        numeric,
        st.sampled_from(["@name", "@index", "@rank", "not(@name)", "true()", "false()"]),
        st.tuples(numeric, comparisons, numeric).map(" ".join),
        st.tuples(strings, st.sampled_from(["=", "!="]), strings).map(" ".join),
        st.tuples(st.sampled_from(["contains", "starts-with"]), strings, strings).map(
            lambda parts: f"{parts[0]}({parts[1]}, {parts[2]})"
        ),
        paths,
        paths.map(lambda path: f"count({path}) > 1"),
        paths.map(lambda path: f"{path}/@rank = 2"),
    )
    return st.one_of(
        simple,
        simple.map(lambda each: f"not({each})"),
        st.tuples(simple, st.sampled_from(["and", "or"]), simple).map(" ".join),
    ).map(lambda each: f"[{each}]")


def steps(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    tests = st.sampled_from([*TYPES, "*", "*", "node()"])
    axes = st.sampled_from(["", "", *(f"{axis}::" for axis in AXES)])
    full = st.tuples(axes, tests, st.lists(predicates(inner), max_size=2).map("".join)).map(
        "".join
    )
    return full | st.sampled_from([".", ".."])


def joined(parts: list[tuple[str, str]]) -> str:
    return "".join(slash + step for slash, step in parts).removeprefix("/")


def paths(inner: st.SearchStrategy[str], **sizes: int) -> st.SearchStrategy[str]:
    slashes = st.sampled_from(["/", "/", "//"])
    return st.lists(st.tuples(slashes, steps(inner)), min_size=1, **sizes).map(joined)


plain = st.sampled_from(["*", "Param", "..", "../*", ".//Linear", "Linear/Param", "//ReLU"])
relative = paths(plain, max_size=2).map(lambda path: f".{path}" if path[0] == "/" else path)
whole = paths(plain | relative, max_size=4).map(
    lambda path: path if path[0] == "/" else f"/{path}"
)
expressions = st.one_of(
    whole,
    st.tuples(whole, whole).map(" | ".join),
    st.tuples(whole, numbers).map(lambda parts: f"({parts[0]})[{parts[1]}]"),
    st.tuples(whole, steps(plain)).map(lambda parts: f"({parts[0]})/{parts[1]}"),
)


@given(modules(), expressions)
def test_random_expressions_select_what_lxml_selects(module: nn.Module, expression: str):
    assert selected(module, expression) == by_lxml(tree(module).xml(), expression)


@given(modules(), expressions)
def test_random_expressions_select_what_elementpath_selects(module: nn.Module, expression: str):
    # XPath 2.0 compares two attributes as texts, and whole numbers are not divided by 0.
    assume(not re.search(r"@\w+ [<>]=? @|(mod|div) (0|position|last)", expression))
    assert selected(module, expression) == by_elementpath(tree(module).xml(), expression)


def test_the_xml_has_the_attributes_of_the_nodes():
    module = GPT()
    dump = etree.fromstring(tree(module).xml())

    def same(node: Node, element: etree._Element) -> None:
        assert (node.type, node.attributes) == (element.tag, dict(element.attrib))
        assert len(node.children) == len(element)
        for child, below in zip(node.children, element, strict=True):
            same(child, below)

    same(tree(module).root, dump)
