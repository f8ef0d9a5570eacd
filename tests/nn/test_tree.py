"""The tree of a module: nodes, paths, wrappers; and selections from it."""

from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from hotgrid.errors import ArgumentError
from hotgrid.nn import query, select, tree


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(4)
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        return self.fc(self.norm(x))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte = nn.Embedding(5, 4)
        self.h = nn.ModuleList([Block(), Block()])
        self.head = nn.Linear(4, 5, bias=False)
        self.head.weight = self.wte.weight
        self.gains = nn.ParameterList([torch.ones(2), torch.ones(3)])
        self.register_buffer("table", torch.ones(2))
        self.register_parameter("absent", None)

    def forward(self, x):
        return self.head(self.h[1](self.h[0](self.wte(x))))


def test_paths_of_parameters_are_the_keys_of_the_state_dict():
    net = Net()
    leaves = [node for node in tree(net) if node.is_parameter]
    state = net.state_dict(keep_vars=True)
    state.pop("table")
    assert [node.path for node in leaves] == list(state)
    assert all(node.parameter is state[node.path] for node in leaves)
    assert all(node.shape == state[node.path].shape for node in leaves)


def test_paths_of_modules_are_those_of_torch():
    net = Net()
    found = {node.path: node.module for node in tree(net) if not node.is_parameter}
    assert found == dict(net.named_modules())


def test_a_node_says_where_it_is():
    found = {node.path: node for node in tree(Net())}
    block, gain, root = found["h.1"], found["gains.1"], found[""]
    assert (block.name, block.index, block.type, block.rank) == (None, 1, "Block", None)
    assert (gain.name, gain.index, gain.type, gain.rank) == (None, 1, "Param", 1)
    assert (root.name, root.index, root.parent, root.key) == (None, None, None, "")
    assert block.parent is found["h"]
    assert list(block.children) == [found["h.1.norm"], found["h.1.fc"]]
    weight = found["h.0.fc.weight"]
    assert weight.attributes == {
        "name": "weight",
        "path": "h.0.fc.weight",
        "shape": "4 4",
        "rank": "2",
        "size": "16",
        "dtype": "float32",
        "trainable": "true",
    }
    with pytest.raises(ArgumentError, match="is a module"):
        _ = block.parameter
    with pytest.raises(ArgumentError, match="is a parameter"):
        _ = weight.module


def test_a_sequence_with_names_keeps_them():
    named = nn.Sequential()
    named.add_module("first", nn.ReLU())
    named.add_module("1", nn.ReLU())
    first, second = tree(named).root.children
    assert (first.name, first.index) == ("first", None)
    assert (second.name, second.index) == (None, 1)


def test_lazy_and_meta_parameters():
    lazy, plain = select(
        nn.ModuleList([nn.LazyLinear(3), nn.Linear(2, 3, device="meta")]), "*/*"
    )
    assert [node.shape for node in lazy.children] == [None, None]
    assert [node.shape for node in plain.children] == [(3, 2), (3,)]
    assert lazy.children[0].attributes.keys() == {"name", "path", "dtype", "trainable"}


def test_a_shared_parameter_comes_once_under_its_first_path():
    net = Net()
    assert list(select(net, "*").parameters()) == [name for name, _ in net.named_parameters()]
    (path,) = select(net, "//Linear[@name='head']").parameters()
    assert path == "wte.weight"
    assert list(select(net, "//Linear[@name='head'] | //Param[@index=1]").parameters()) == [
        "wte.weight",
        "gains.1",
    ]


def test_nested_nodes_give_each_parameter_once():
    found = select(Net(), "//Block | //Linear | //Param[@name='bias']")
    assert len(found) == 9
    assert len(found.parameters()) == 9
    assert list(found.modules()) == ["h.0", "h.0.fc", "h.1", "h.1.fc", "head"]


def wrapped() -> dict[str, Any]:
    checkpointed = Net()
    checkpointed.h[0] = checkpoint_wrapper(checkpointed.h[0])
    inner = Net()
    inner.h[1] = torch.compile(inner.h[1], backend="eager")
    return {
        "compile": torch.compile(Net(), backend="eager"),
        "compile of a block": inner,
        "checkpoint": checkpointed,
        "checkpoint, compiled": torch.compile(checkpoint_wrapper(Net()), backend="eager"),
        "average": torch.optim.swa_utils.AveragedModel(Net()),
        "DataParallel": nn.DataParallel(Net()),
    }


def facts(module: nn.Module) -> list[tuple]:
    return [(n.type, n.path, n.name, n.index, n.shape, n.order, n.end) for n in tree(module)]


@pytest.mark.parametrize("name", wrapped())
def test_wrappers_are_transparent(name: str):
    assert facts(wrapped()[name]) == facts(Net())


class FSDPNet(Net):
    """A class of a user, with a name that begins as FSDP2's do."""


@pytest.fixture
def group():
    store = torch._C._distributed_c10d.HashStore()
    dist.init_process_group("gloo", store=store, rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def test_modules_of_a_process_group_look_as_others_do(group: None):
    mesh = init_device_mesh("cpu", (1,))
    copied = nn.parallel.DistributedDataParallel(Net())
    cut = Net()
    for each in (*cut.h, cut):
        fully_shard(each, mesh=mesh)
    assert type(cut).__name__ == "FSDPNet"
    for module in (copied, cut, torch.compile(cut, backend="eager")):
        assert facts(module) == facts(Net())


def test_only_names_that_fsdp_made_lose_their_prefix():
    assert tree(FSDPNet()).root.type == "FSDPNet"


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        (
            "Net/*[@name='h']/Linear",
            ["no `Linear` under `Net/*[@name='h']`", "2 Block", "//Linear"],
        ),
        ("//Liner", ["no `Liner`", "did you mean `Linear`?"]),
        ("//Param[@name='wieght']", ["@name is not `wieght`; did you mean `weight`?"]),
        ("//Block[@index=7]", ["@index is not `7`", "(it is 0, 1)", "<Block h.0>"]),
        ("Net/Block | //Bloc", ["no `Block` under `Net`", "did you mean `Block`?"]),
        ("(//Block)[9]", ["2 Block", "no condition after it holds"]),
        ("Gpt/Linear", ["no `Gpt` at the top, but 1 Net"]),
        ("//Param[ends-with(@path, 'wte.wait')]", ["@path is not `wte.wait`", "wte.weight"]),
        ("/", ["selects nothing from Net"]),
    ],
)
def test_an_empty_selection_is_an_error_that_shows_what_is_there(expression, words):
    with pytest.raises(ArgumentError) as caught:
        select(Net(), expression)
    assert f"`{expression}` selects nothing" in str(caught.value)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("expression", "place", "words"),
    [
        (
            "Net/*[@name='h',@rank=2]",
            15,
            ["expected `]`, found `,`", "Join conditions with `and`"],
        ),
        ("Net/", 4, ["found the end"]),
        ("", 0, ["found the end"]),
        ("//Linear[", 9, ["found the end"]),
        ("//Linear]", 8, ["expected the end, found `]`"]),
        ("//Param[@nmae='x']", 9, ["did you mean `@name`?", "@trainable"]),
        ("//Param[contain(@name,'x')]", 8, ["did you mean `contains`?"]),
        ("//Param[contains(@name)]", 8, ["takes 2 arguments, got 1"]),
        ("childs::Param", 0, ["did you mean `child`?"]),
        ("//Param[text()]", 8, ["`text()`"]),
        ("//Param['x]", 8, ["quote is not closed"]),
        ("//Param[@rank/..]", 14, ["a path cannot continue from an attribute"]),
        ("//Param#x", 7, ["no token starts here"]),
        ("Net/.[1]", 5, ["expected `/`"]),
    ],
)
def test_an_error_in_an_expression_is_shown_with_a_caret(expression, place, words):
    with pytest.raises(ArgumentError) as caught:
        select(Net(), expression)
    said = str(caught.value)
    assert f"\n  {expression}\n  {' ' * place}^" in said
    for word in words:
        assert word in said


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("//Param/@name", "selects attributes"),
        ("count(//Param)", "gives a number"),
        ("'Linear'", "gives a string"),
        ("//Param = 2", "gives a boolean"),
        ("//Param | 2", "`|` joins"),
        ("('x')[1]", "predicate cannot follow a string"),
        ("('x')/Linear", "cannot continue from a string"),
        ("//Param[count(2) = 1]", "`count` takes nodes"),
        ("//Param[name(2) = 'x']", "`name` takes nodes"),
        ("//Param[matches(@name, '(')]", "not a regular expression"),
    ],
)
def test_what_is_not_a_set_of_nodes_cannot_be_selected(expression, words):
    with pytest.raises(ArgumentError, match=r".") as caught:
        select(Net(), expression)
    assert words in str(caught.value)


def test_selections_without_parameters_or_without_modules_are_errors():
    net = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    with pytest.raises(ArgumentError, match="no parameter"):
        select(net, "//ReLU").parameters()
    with pytest.raises(ArgumentError, match=r"`/\.\.`"):
        select(net, "//Param").modules()
    with pytest.raises(ArgumentError, match="nested too deeply"):
        select(nn.Linear(2, 2), "//*[" + "not(" * 500 + "1" + ")" * 500 + "]")
    with pytest.raises(ArgumentError, match="nested too deeply"):
        select(nn.Linear(2, 2), "*[" + "1 + " * 5000 + "1]")
    with pytest.raises(ArgumentError, match=r"torch\.nn\.Module, got int"):
        tree(3)


def test_thousands_of_paths_can_be_joined():
    assert select(nn.Linear(2, 2), " | ".join(["*/*", *["/*"] * 3000])).paths == [
        "",
        "weight",
        "bias",
    ]


def test_a_query_builds_the_expression():
    whole = query("Net").named("h").descendants("Linear").named("weight").where(rank=2)
    assert str(whole) == "Net/*[@name='h']//Linear/*[@name='weight'][@rank=2]"
    assert select(Net(), whole).paths == ["h.0.fc.weight", "h.1.fc.weight"]
    one = query().named("h").at(1).parameters().where("@rank < 2", trainable=True)
    assert select(Net(), one).paths == ["h.1.norm.weight", "h.1.norm.bias", "h.1.fc.bias"]
    both = (query().children("Embedding") | query().children("Linear")).named("weight")
    assert select(Net(), both).paths == ["wte.weight", "head.weight"]


def test_a_query_quotes_and_checks_what_it_is_given():
    assert str(query().named("it's")) == '*/*[@name="it\'s"]'
    with pytest.raises(ArgumentError, match="both kinds of quotes"):
        query().named("'\"")
    with pytest.raises(ArgumentError, match="did you mean `rank`"):
        query().where(rnak=2)
    with pytest.raises(ArgumentError, match="not a path expression"):
        query().where("@rank=")
    with pytest.raises(ArgumentError, match="gives a number"):
        query("count(*)")


def test_a_tree_serves_several_selections():
    grown = tree(Net())
    assert select(grown, "//Linear")[0] is select(grown, "//Block/Linear")[0]
    assert len(grown) == len(list(grown)) == len(grown[:])
    assert grown[0] is grown.root
    assert repr(grown) == "<Tree of Net: 23 nodes, 12 parameters>"
    assert repr(select(grown, "//Block")) == "<Selection `//Block`: Block h.0, Block h.1>"


def test_a_digit_that_is_no_number_is_a_name():
    layers = nn.Sequential()
    layers.add_module("²", nn.ReLU())
    assert [(node.name, node.index) for node in tree(layers)][1:] == [("²", None)]
