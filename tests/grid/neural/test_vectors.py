"""Cells as vectors: steps that mix channels by matrices, in every form alike."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import pytest
import torch
from hypothesis import given, settings, strategies as st
from torch import Tensor

from hotgrid.cluster import run_ranks
from hotgrid.config import override
from hotgrid.errors import ArgumentError
from hotgrid.grid import CellVectors, Field, Input, Simulation, VectorModel, mixed, rollout
from hotgrid.grid.neural import CellNetwork, NeuralCells, SamplePool

CLASSIC = ("identity", "sobel_y", "sobel_x")


class Cells(NeuralCells):
    """Random cells of any network."""

    def initial(self, size, generator):
        cells = torch.rand(self.network.channels, *size, generator=generator)
        return self.begun(cells, generator)


def automaton(channels: int = 6, hidden: int = 8, filters=CLASSIC, **options: Any) -> Cells:
    return Cells(CellNetwork.random(channels, hidden, filters, scale=0.3), **options)


def simulation(model: VectorModel, size=(14, 22), **options: Any) -> Simulation:
    plain = {"compiled": False, "form": "vectors", "device": "cpu", "size": size}
    return Simulation(model, **{**plain, **options})


def by_convolution(network: CellNetwork, x: Tensor) -> Tensor:
    """A step of a network as convolutions over `[channels, rows, columns]`."""
    sobel = torch.tensor([[-1.0, 0, 1], [-2, 0, 2], [-1, 0, 1]], dtype=x.dtype) / 8
    kernels = {
        "identity": torch.tensor([[0.0, 0, 0], [0, 1, 0], [0, 0, 0]], dtype=x.dtype),
        "sobel_y": sobel.T,
        "sobel_x": sobel,
        "laplacian": torch.tensor([[1.0, 2, 1], [2, -12, 2], [1, 2, 1]], dtype=x.dtype) / 16,
    }
    wide = torch.nn.functional.pad(x[None], (1, 1, 1, 1), mode="circular")
    seen = torch.cat(
        [
            torch.conv2d(wide, kernels[name].expand(len(x), 1, 3, 3), groups=len(x))[0]
            for name in network.filters
        ]
    )
    w = {name: each.to(x.dtype) for name, each in network.tensors().items()}
    inside = torch.einsum("hi,iyx->hyx", w["hidden"], seen) + w["hidden_bias"][:, None, None]
    change = torch.einsum("ch,hyx->cyx", w["output"], inside.relu())
    return x + change + w["output_bias"][:, None, None]


@settings(deadline=None, max_examples=20)
@given(
    channels=st.integers(1, 9),
    hidden=st.integers(1, 12),
    filters=st.lists(
        st.sampled_from(["identity", "sobel_y", "sobel_x", "laplacian"]), min_size=1
    ),
    size=st.tuples(st.integers(3, 12), st.integers(3, 12)),
)
def test_a_step_is_that_of_convolutions(channels, hidden, filters, size):
    model = automaton(channels, hidden, filters)
    sim = simulation(model, size, dtype=torch.float64)
    start = sim.state["cells"].reshape(channels, *size)
    sim.step()
    torch.testing.assert_close(
        sim.state["cells"].reshape(channels, *size), by_convolution(model.network, start)
    )


@pytest.mark.parametrize(
    "boundary", ["periodic", "neumann", "mirror", 0.5, ((0.0, "neumann"), "periodic")]
)
@pytest.mark.parametrize("form", ["roll", "padded"])
def test_every_form_has_the_same_bits_with_every_boundary(boundary, form):
    model = automaton(fire=0.5, alive=2, boundary=boundary)
    sims = [simulation(model, form=each) for each in ("vectors", form)]
    for sim in sims:
        sim.run(6)
    for name, x in sims[0].state.items():
        assert torch.equal(x, sims[1].state[name])


@pytest.mark.parametrize("boundary", ["periodic", "neumann"])
@pytest.mark.parametrize(("mesh", "depth", "overlap"), [("2x1", 2, False), ("2x2", 1, True)])
def test_a_grid_cut_over_ranks_has_the_bits_of_a_whole_one(boundary, mesh, depth, overlap):
    model = automaton(fire=0.5, alive=2, boundary=boundary)
    whole = simulation(model, (24, 32))
    whole.run(9)

    def part(communicator):
        options = {"mesh": mesh, "communicator": communicator, "depth": depth}
        sim = simulation(model, (24, 32), overlap=overlap, **options)
        sim.run(9)
        assert sim.form == "vectors"
        return sim.state

    for state in run_ranks(math.prod(map(int, mesh.split("x"))), part):
        assert all(torch.equal(x, state[name]) for name, x in whole.state.items())


class Driven(VectorModel):
    """A field between ends that are not joined, mixed with inputs, which always repeat."""

    fields = (Field("cells", components=3, boundary=((0.5, "mirror"), "neumann")),)
    inputs = (Input("flow", components=2), Input("heat"))
    matrix = torch.randn(3, 9, generator=torch.manual_seed(2)) / 4

    def initial(self, size, generator):
        return {"cells": torch.rand(3, *size, generator=generator)}

    def static(self, size):
        numbers = torch.rand(3, *size, generator=torch.Generator().manual_seed(3))
        return {"flow": numbers[:2], "heat": numbers[2]}

    def vector_step(self, state, inputs, params):
        cells, flow, heat = state["cells"], inputs["flow"], inputs["heat"]
        seen = [cells[-1, 0], flow[0, 1], flow[-1, 0], heat[1, 0], heat[0, 0]]
        return {"cells": 0.5 * cells[0, 1] + mixed(torch.cat(seen, -1), self.matrix)}


@pytest.mark.parametrize("form", ["vectors", "roll", "padded"])
@pytest.mark.parametrize(("mesh", "depth"), [("2x1", 1), ("1x2", 2), ("2x2", 1)])
def test_inputs_repeat_beyond_the_ends_of_a_bounded_grid_on_a_mesh(form, mesh, depth):
    whole = simulation(Driven(), (9, 10), form=form)
    whole.run(4)

    def part(communicator):
        options = {"mesh": mesh, "communicator": communicator, "depth": depth}
        sim = simulation(Driven(), (9, 10), form=form, **options)
        sim.run(4)
        return sim.state["cells"]

    for cells in run_ranks(math.prod(map(int, mesh.split("x"))), part):
        assert torch.equal(cells, whole.state["cells"])


class Line(VectorModel):
    """Cells along a line, which may be few."""

    ranks = (1,)
    fields = (Field("cells", components=2, boundary="neumann"),)
    matrix = torch.tensor([[0.5, 0.25], [-0.25, 0.5]])

    def initial(self, size, generator):
        return {"cells": torch.rand(2, *size, generator=generator)}

    def vector_step(self, state, inputs, params):
        cells = state["cells"]
        return {"cells": mixed(cells[-1] + cells[1], self.matrix)}


def test_cells_along_a_line_may_be_mixed():
    sim = simulation(Line(), (7,))
    x = sim.state["cells"]
    sim.run(3)
    for _ in range(3):
        wide = torch.cat([x[:, :1], x, x[:, -1:]], 1)
        x = Line.matrix @ (wide[:, :-2] + wide[:, 2:])
    torch.testing.assert_close(sim.state["cells"], x)


def test_a_batch_is_as_many_single_runs():
    model = automaton(fire=0.5, alive=0)
    together = simulation(model, batch=3)
    begin = together.state
    together.run(5)
    for run in range(3):
        alone = simulation(model, state={name: x[run] for name, x in begin.items()})
        alone.run(5)
        assert all(torch.equal(x, together.state[name][run]) for name, x in alone.state.items())


def test_a_rollout_of_a_batch_is_as_many_rollouts_and_remat_changes_no_gradient():
    model = automaton(fire=0.5, alive=0)
    weights = list(model.network.tensors().values())
    for x in weights:
        x.requires_grad_()
    begin = simulation(model, (9, 10), batch=2).state

    def gradients(**options: Any) -> list[Tensor]:
        later = rollout(model, begin, 6, batch=2, **options)["cells"]
        return list(torch.autograd.grad(later.square().sum(), weights))

    together = rollout(model, begin, 6, batch=2)["cells"]
    for run in range(2):
        alone = rollout(model, {name: x[run] for name, x in begin.items()}, 6)["cells"]
        assert torch.equal(together[run], alone)
    for whole, again in zip(gradients(), gradients(remat=2), strict=True):
        assert torch.equal(whole, again)
        assert whole.abs().sum() > 0


def test_remat_bounds_the_memory_of_a_gradient():
    model = automaton(16, 32)
    for x in model.network.tensors().values():
        x.requires_grad_()
    begin = simulation(model, (16, 16)).state
    held: list[int] = []
    for remat in (None, 4):
        kept: list[int] = []

        def keep(x: Tensor, kept=kept) -> Tensor:
            kept.append(x.numel())
            return x

        with torch.autograd.graph.saved_tensors_hooks(keep, lambda x: x):
            rollout(model, begin, 16, remat=remat)
        held.append(sum(kept))
    assert held[1] < held[0] / 10


class Along(VectorModel):
    """A product along space, which no step may make."""

    fields = (Field("cells", components=4),)

    def vector_step(
        self,
        state: Mapping[str, CellVectors],
        inputs: Mapping[str, CellVectors],
        params: Mapping[str, Tensor],
    ) -> dict[str, Tensor]:
        cells = state["cells"].here
        n = cells.shape[0]
        return {"cells": torch.einsum("ab,bxc->axc", torch.eye(n).to(cells), cells)}


@pytest.mark.parametrize("form", ["roll", "vectors"])
def test_a_product_along_space_is_refused_by_name(form):
    with pytest.raises(ArgumentError, match=r"cannot run on a grid: `bmm`.*einsum.*adds up"):
        simulation(Along(), form=form).step()


def test_channels_stay_next_to_each_other_in_memory():
    sim = simulation(automaton())
    sim.run(2)
    assert sim._form.read()["cells"].movedim(0, -1).is_contiguous()


@pytest.mark.parametrize(
    ("dtype", "before", "after"),
    # One number made from several is a product with a vector; double precision by a wide
    # matrix is added up in another order where there are fewer than 192 cells.
    [(torch.float32, 16, 24), (torch.float32, 31, 1), (torch.float64, 256, 200)],
)
@pytest.mark.parametrize("count", [1, 2, 5, 40, 63, 64, 66, 127, 333, 500])
def test_mixed_gives_a_cell_the_same_bits_among_any_number_of_cells(
    count, dtype, before, after
):
    generator = torch.Generator().manual_seed(0)
    cells = torch.randn(700, before, generator=generator, dtype=dtype)
    weight = torch.randn(after, before, generator=generator, dtype=dtype)
    bias = torch.randn(after, generator=generator, dtype=dtype)
    whole = mixed(cells, weight, bias)
    torch.testing.assert_close(whole, cells @ weight.T + bias, rtol=1e-4, atol=1e-4)
    assert torch.equal(mixed(cells[:count], weight, bias), whole[:count])


def test_half_precision_is_close_to_single():
    model = automaton(16, 32)
    single, half = (simulation(model, dtype=kind) for kind in (torch.float32, torch.bfloat16))
    for sim in (single, half):
        sim.run(3)
    assert half.state["cells"].dtype == torch.bfloat16
    torch.testing.assert_close(
        half.state["cells"].float(), single.state["cells"], atol=0.05, rtol=0
    )


@pytest.mark.compiles
@pytest.mark.long
# Inductor itself still imports what torch has deprecated.
@pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")
def test_compiled_steps_are_close_to_uncompiled_ones():
    model = automaton(fire=0.5, alive=2)
    plain = simulation(model)
    with override({"compile.enabled": "on"}):
        compiled = simulation(model, form=None, compiled=True)
        assert compiled.form == "vectors"
        for sim in (plain, compiled):
            sim.run(5)
    torch.testing.assert_close(compiled.state["cells"], plain.state["cells"])
    assert torch.equal(compiled.state["random"], plain.state["random"])


def test_a_network_survives_its_file(tmp_path):
    network = CellNetwork.random(5, 7, ("identity", "laplacian"), scale=1.0)
    network.save(tmp_path / "rule.safetensors")
    again = CellNetwork.load(tmp_path / "rule.safetensors")
    assert again.filters == network.filters
    for name, x in network.tensors().items():
        assert torch.equal(again.tensors()[name], x)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"filters": ("sobel",)}, "`filters` has 'sobel'"),
        ({"filters": ()}, "needs one of identity"),
        ({"hidden": torch.zeros(4, 5)}, r"`hidden` must have the shape \(4, 9\)"),
        ({"output_bias": torch.zeros(2)}, r"`output_bias` must have the shape \(3,\)"),
    ],
)
def test_a_network_whose_parts_do_not_fit_is_refused(wrong, said):
    right: dict[str, Any] = {
        "filters": CLASSIC,
        "hidden": torch.zeros(4, 9),
        "hidden_bias": torch.zeros(4),
        "output": torch.zeros(3, 4),
        "output_bias": torch.zeros(3),
    }
    assert CellNetwork(**right).channels == 3
    with pytest.raises(ArgumentError, match=said):
        CellNetwork(**{**right, **wrong})


def test_a_file_that_is_no_network_is_refused(tmp_path):
    (tmp_path / "x").write_text("nothing")
    for path in (tmp_path / "x", tmp_path / "y"):
        with pytest.raises(ArgumentError, match="is not a cell network file"):
            CellNetwork.load(path)


def test_cells_fire_as_often_as_they_should():
    network = CellNetwork(
        filters=("identity",),
        hidden=torch.zeros(1, 1),
        hidden_bias=torch.zeros(1),
        output=torch.zeros(1, 1),
        output_bias=torch.ones(1),
    )
    sim = simulation(
        Cells(network, fire=0.3), (200, 200), state={"cells": torch.zeros(200, 200)}
    )
    sim.run(20)
    fired = sim.state["cells"]
    assert fired.mean().item() == pytest.approx(20 * 0.3, rel=0.01)
    assert fired.var().item() == pytest.approx(20 * 0.3 * 0.7, rel=0.05)


def test_a_pool_gives_back_what_was_put():
    pool = SamplePool({"cells": torch.zeros(2, 3, 3)}, count=5, seed=1)
    places, states = pool.draw(3)
    assert len(set(places.tolist())) == 3
    pool.put(places, {"cells": states["cells"] + torch.arange(3.0).view(3, 1, 1, 1)})
    sums = pool.states["cells"].mean((1, 2, 3))
    assert sums[places].tolist() == [0, 1, 2]
    assert sums.sum() == 3
    with pytest.raises(ArgumentError, match="has 5 states, 6 were drawn"):
        pool.draw(6)


class Returning(VectorModel):
    """A step that returns what it is told to."""

    fields = (Field("cells", components=4),)

    def __init__(self, made: Callable[[CellVectors], Any]) -> None:
        super().__init__()
        self.made = made

    def vector_step(self, state, inputs, params):
        return self.made(state["cells"])


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda c: {"cells": c.here.cumsum(0)}, "cannot run on a grid: `cumsum`"),
        (
            lambda c: {"cells": c.here.movedim(-1, 0)},
            r"`\[\*space, 4\]` .* got the shape \(4, ",
        ),
        (lambda c: {"cells": c.here[..., :1]}, r"channels last, got the shape \(.*, 1\)"),
        (lambda c: {"cells": c}, "channels last, got CellVectors"),
        (lambda c: {"cell": c.here}, "returned cell, but not its field `cells`"),
        (lambda c: c.here, "must return a dict .* got Tensor"),
    ],
)
def test_a_mistake_is_told_of_the_step_that_was_written(made, said):
    with pytest.raises(ArgumentError, match=rf"`Returning\.vector_step` .*{said}"):
        simulation(Returning(made)).step()
