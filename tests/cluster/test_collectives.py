"""Collectives on four ranks against the same mathematics on one process."""

import pytest
import torch

from hotgrid.cluster import (
    HaloExchange,
    Mesh,
    SingleRank,
    all_gather,
    all_reduce,
    all_to_all,
    broadcast,
    halo_exchange,
    join,
    permute,
    reduce_scatter,
    run_ranks,
    take,
    to_device,
)
from hotgrid.errors import ArgumentError, DimensionError, HotgridError

from .collective_cases import CASES

RANKS = 4


def inputs(case):
    generator = torch.Generator().manual_seed(7)
    shapes = [case.shape(rank) for rank in range(RANKS)]
    return [torch.rand(shape, dtype=torch.float64, generator=generator) for shape in shapes]


def loss_of(out, rank):
    """Another one on every rank, and not linear."""
    weight = torch.linspace(1, 2, max(1, out.numel()), dtype=torch.float64)
    return (1 + rank) * (weight[: out.numel()].reshape(out.shape) * out.sin()).sum()


def twin_results(case, xs):
    xs = [x.clone().requires_grad_() for x in xs]
    outs = case.twin(xs)
    loss = sum(loss_of(out, rank) for rank, out in enumerate(outs))
    grads = torch.autograd.grad(loss, xs, create_graph=True, allow_unused=True)
    grads = [torch.zeros_like(x) if g is None else g for g, x in zip(grads, xs, strict=True)]
    again = torch.autograd.grad(sum(g.square().sum() for g in grads), xs, allow_unused=True)
    again = [torch.zeros_like(x) if g is None else g for g, x in zip(again, xs, strict=True)]
    return outs, grads, again


@pytest.mark.parametrize("name", CASES)
def test_values_gradients_and_their_gradients_are_those_of_one_process(name):
    case = CASES[name]
    xs = inputs(case)

    def rank(c):
        x = xs[c.rank].clone().requires_grad_()
        out = case.collective(x, c)
        (grad,) = torch.autograd.grad(loss_of(out, c.rank), x, create_graph=True)
        (again,) = torch.autograd.grad(grad.square().sum(), x)
        return out.detach(), grad.detach(), again

    found = run_ranks(RANKS, rank, checking=True)
    for kind, right in enumerate(twin_results(case, xs)):
        for each, wanted in zip(found, right, strict=True):
            torch.testing.assert_close(each[kind], wanted.detach(), rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("name", CASES)
def test_gradients_are_slopes(name):
    """Finite differences of the sum of all losses, along a random direction."""
    case, step = CASES[name], 1e-6
    xs = inputs(case)

    def rank(c):
        torch.manual_seed(c.rank)
        x, along = xs[c.rank].clone().requires_grad_(), torch.rand_like(xs[c.rank])
        (grad,) = torch.autograd.grad(loss_of(case.collective(x, c), c.rank), x)
        with torch.no_grad():
            up, down = (
                loss_of(case.collective(x + h * along, c), c.rank) for h in (step, -step)
            )
        return (up - down) / (2 * step), (grad * along).sum()

    slopes, grads = zip(*run_ranks(RANKS, rank), strict=True)
    torch.testing.assert_close(sum(slopes), sum(grads), rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("name", CASES)
def test_without_a_gradient_the_result_is_a_tensor_of_its_own(name):
    case = CASES[name]
    xs = inputs(case)

    def rank(c):
        # Every second element of a larger tensor: not contiguous.
        x = torch.stack([xs[c.rank], xs[c.rank]], -1)[..., 0]
        out = case.collective(x, c)
        assert not out.requires_grad
        x.fill_(-1)
        return out

    for out, right in zip(run_ranks(RANKS, rank), case.twin(xs), strict=True):
        torch.testing.assert_close(out, right, rtol=1e-13, atol=0)


def test_ranks_that_get_nothing_get_zeros_without_memory():
    found = run_ranks(2, lambda c: permute(torch.ones(1000, 1000), c, {0: 1}))
    assert [x.untyped_storage().nbytes() for x in found] == [4, 4_000_000]
    assert found[0].sum() == 0


def test_the_largest_of_equals_shares_its_gradient():
    def rank(c):
        x = torch.tensor([1.0, float(c.rank), float(c.rank % 2)], requires_grad=True)
        all_reduce(x, c, "max").sum().backward()
        return x.grad.tolist()

    assert run_ranks(4, rank) == [[1, 0, 0], [1, 0, 2], [1, 0, 0], [1, 4, 2]]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_the_largest_is_that_of_torch_with_nan_and_inf(dtype):
    inf, nan = torch.inf, torch.nan
    column = [nan, -nan, inf, -inf, 0.0, -0.0, 1.5, -1.5, torch.finfo(dtype).tiny]
    # Every number meets every other, on either rank.
    pairs = torch.cartesian_prod(*[torch.tensor(column, dtype=dtype)] * 2).T
    for found in run_ranks(2, lambda c: all_reduce(pairs[c.rank], c, "max")):
        torch.testing.assert_close(found, pairs.amax(0), rtol=0, atol=0, equal_nan=True)


def test_results_may_be_written_into():
    def rank(c):
        x = torch.ones(4, requires_grad=True)
        for collective in (all_gather, reduce_scatter, all_reduce, broadcast, all_to_all):
            out = collective(x, c)
            out[0] = 5.0
            out.sum().backward()
        return x.grad

    assert all(bool(grad.isfinite().all()) for grad in run_ranks(2, rank))


def test_views_that_conjugate_or_negate_travel_as_numbers():
    z = torch.tensor([1 + 2j, 3 - 4j])
    negative = torch.tensor([1 + 2j]).conj().imag
    assert negative.is_neg()
    for found in run_ranks(2, lambda c: all_gather(z.conj(), c)):
        assert found.tolist() == z.conj().tolist() * 2
    for found in run_ranks(2, lambda c: all_gather(negative, c)):
        assert found.tolist() == [-2.0, -2.0]
    assert run_ranks(2, lambda c: to_device(z.conj(), c, 1))[1].tolist() == z.conj().tolist()


@pytest.mark.parametrize("size", [4, 40])
def test_ranks_that_get_nothing_get_the_layout_of_the_others(size):
    turned = torch.ones(size, size).t()
    strides = run_ranks(2, lambda c: to_device(turned[:3], c, 1).shape)
    assert strides[0] == strides[1]
    small = run_ranks(2, lambda c: to_device(torch.ones(4, 4).t(), c, 1).view(-1))
    assert small[0].sum() == 0


def test_a_loss_that_all_ranks_share_counts_once_for_each():
    """The convention, as the docs have it."""

    def rank(c):
        x = torch.tensor(3.0, requires_grad=True)
        loss = all_reduce(x.square(), c)
        (loss / c.size).backward()
        return x.grad.item()

    assert run_ranks(3, rank) == [6.0] * 3


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.int32, torch.complex64])
def test_other_dtypes_add_up(dtype):
    def rank(c):
        x = torch.tensor([[1, 2], [3, 4]]).to(dtype) * (c.rank + 1)
        return all_reduce(x, c), reduce_scatter(x, c)

    whole = torch.tensor([[3, 6], [9, 12]]).to(dtype)
    for r, (total, part) in enumerate(run_ranks(2, rank)):
        assert torch.equal(total, whole)
        assert torch.equal(part, whole[r : r + 1])


def test_bools_know_only_the_largest():
    found = run_ranks(2, lambda c: all_reduce(torch.tensor([c.rank == 0, False]), c, "max"))
    assert [x.tolist() for x in found] == [[True, False]] * 2


def test_empty_parts():
    def rank(c):
        x = torch.full((2 * c.rank, 3), 1.0, requires_grad=True)
        whole = all_gather(x, c, sizes=(0, 2))
        whole.sum().backward()
        return whole.shape, x.grad.sum().item()

    assert run_ranks(2, rank) == [((2, 3), 0.0), ((2, 3), 12.0)]


CALLS = {
    "all_reduce": all_reduce,
    "all_gather": lambda x, c: all_gather(x, c, 1),
    "reduce_scatter": reduce_scatter,
    "all_to_all": lambda x, c: all_to_all(x, c, 1, 1),
    "broadcast": broadcast,
    "permute": lambda x, c: permute(x, c, {0: 1}),
}


@pytest.mark.parametrize("name", CALLS)
def test_checking_names_the_shapes_that_differ_instead_of_hanging(name):
    with pytest.raises(ArgumentError) as found:
        run_ranks(2, lambda c: CALLS[name](torch.zeros(4 + 2 * c.rank, 2), c), checking=True)
    assert f"rank 0: {name}, torch.float32" in str(found.value)
    assert f"rank 1: {name}, torch.float32" in str(found.value)


def test_checking_finds_ranks_in_different_calls():
    def rank(c):
        (all_reduce if c.rank else broadcast)(torch.zeros(2), c)

    with pytest.raises(ArgumentError, match=r"rank 0: broadcast.*\n.*rank 1: all_reduce"):
        run_ranks(2, rank, checking=True)


X = torch.zeros(4, 2)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda c: all_reduce(X, c, "maxx"), "`op` 'maxx' is unknown.*; did you mean `max`"),
        (lambda c: all_reduce(X, c, "product"), "it can be 'sum', 'mean', 'max'"),
        (lambda c: reduce_scatter(X, c, op="max"), "it can be 'sum', 'mean'$"),
        (lambda c: all_reduce(X.short(), c), "sum over ranks of torch.int16 is not defined"),
        (lambda c: all_reduce(X.int(), c, "mean"), "mean over ranks of torch.int32"),
        (lambda c: all_reduce(X.bool(), c), "sum over ranks of torch.bool"),
        (lambda c: all_reduce(X * 1j, c, "max"), "max over ranks of torch.complex64"),
        (lambda c: all_gather(X, c, sizes=(1, 2)), r"\(1, 2\) must be 1 sizes"),
        (lambda c: all_gather(X, c, sizes=(3,)), "gives rank 0 3, but its part has 4"),
        (lambda c: reduce_scatter(X, c, sizes=(3,)), r"add up to 3, but dim 0 .* has 4"),
        (lambda c: all_to_all(X, c, split_sizes=(-1,)), "each 0 or more"),
        (lambda c: broadcast(X, c, 1), "`source` 1 is not a rank: there are 0 to 0"),
        (lambda c: permute(X, c, {0: 2}), "`target` 2 is not a rank"),
        (lambda c: to_device(X, c, "cpu"), "`target` 'cpu' is not a rank"),
        (lambda c: all_reduce(X, "max"), "`communicator` must be a Communicator, got 'max'"),
        (lambda c: all_gather(1.5, c), "`x` must be a tensor, got 1.5"),
        (lambda c: halo_exchange(X, c), "`halo` must be a HaloExchange, got <"),
        (lambda c: halo_exchange(X, HaloExchange(c, 1, (3,), (1,))), r"expects \(3,\) cells"),
    ],
)
def test_mistakes_are_reported(call, text):
    with pytest.raises(ArgumentError, match=text):
        call(SingleRank())


def test_two_ranks_cannot_send_to_one():
    with pytest.raises(ArgumentError, match=r"\{0: 1, 1: 1\} sends to one rank twice"):
        run_ranks(2, lambda c: permute(X, c, {0: 1, 1: 1}))


def test_a_dim_that_does_not_exist():
    with pytest.raises(DimensionError, match="no dim `2`"):
        all_gather(X, SingleRank(), 2)


def test_a_communicator_that_is_gone_is_reported():
    name = SingleRank().name
    with pytest.raises(HotgridError, match=f"`{name}` is gone"):
        torch.ops.hotgrid.all_reduce(X, "sum", name)


def stencil(x):
    """Not linear, with a diagonal neighbour; loses a cell at every side."""
    middle = x[..., 1:-1, 1:-1]
    around = x[..., 2:, 1:-1] + x[..., :-2, 1:-1] + x[..., 1:-1, 2:] * x[..., :-2, :-2]
    return middle + 0.1 * torch.sin(around - 3 * middle)


@pytest.mark.parametrize("mesh", ["2x2", "3x1", "1x2"])
@pytest.mark.parametrize("depth", [1, 3])
def test_a_gradient_through_many_steps_and_exchanges(mesh, depth):
    size, steps = (11, 9), 12
    torch.manual_seed(1)
    whole = torch.rand(2, *size, dtype=torch.float64)

    def advanced(x, halo):
        for _ in range(steps // depth):
            x = halo_exchange(x, halo)
            for _ in range(depth):
                x = stencil(x)
        return x

    def rank(c, mesh=mesh):
        halo = HaloExchange(c, mesh, size, (depth, depth))
        x = take(whole, halo.block).requires_grad_()
        later = advanced(x, halo)
        later.cos().sum().backward()
        return later.detach(), x.grad

    single = rank(SingleRank(), "1x1")
    found = run_ranks(Mesh(mesh).ranks, rank)
    blocks = Mesh(mesh).blocks(size)
    later, grad = (join([each[k] for each in found], blocks) for k in (0, 1))
    assert torch.equal(later, single[0])
    torch.testing.assert_close(grad, single[1], rtol=1e-12, atol=1e-14)
