"""The decorator that reads several contracts together."""

import asyncio

import numpy as np
import pytest
import torch

from hotgrid.contracts import Contract, ContractError, checked
from hotgrid.errors import ArgumentError


@checked(x="b (h win) (w win) c", bind="win", returns="n win win c")
def partition(x, win):
    """Cut into windows."""
    b, h, w, c = x.shape
    x = x.reshape(b, h // win, win, w // win, win, c)
    return x.swapaxes(2, 3).reshape(-1, win, win, c)


def test_a_good_call_passes_through():
    assert partition(np.zeros((2, 8, 12, 3)), 4).shape == (12, 4, 4, 3)
    assert partition(x=np.zeros((2, 8, 12, 3)), win=4).shape == (12, 4, 4, 3)
    assert partition.__name__ == "partition"
    assert partition.__doc__ == "Cut into windows."


def test_a_bad_argument_is_named_with_the_others():
    @checked(x="b n c", w="c d")
    def product(x, w):
        return x @ w

    with pytest.raises(ContractError) as caught:
        product(np.zeros((2, 5, 3)), np.zeros((4, 6)))
    text = str(caught.value)
    assert "argument:   w" in text
    assert "`c` is 3, but this size is 4" in text
    assert "x:          (2, 5, 3) against [b, n, c]" in text


def test_arguments_settle_each_other():
    @checked(x="b (h p)", y="p", returns=("b", "h"))
    def both(x, y):
        return np.zeros(x.shape[0]), np.zeros(x.shape[1] // len(y))

    assert len(both(np.zeros((2, 12)), np.zeros(4))) == 2
    with pytest.raises(ContractError, match="argument:   x"):
        both(np.zeros((2, 13)), np.zeros(4))


def test_a_bad_result_is_caught():
    @checked(x="a b", returns="b a")
    def wrong(x):
        return x

    with pytest.raises(ContractError, match="argument:   result"):
        wrong(np.zeros((2, 3)))
    assert wrong(np.zeros((3, 3))).shape == (3, 3)


def test_the_number_of_results_is_checked():
    @checked(x="a", returns=("a", "a"))
    def one(x):
        return x

    with pytest.raises(ContractError, match="should return 2 values"):
        one(np.zeros(3))


def test_none_is_not_checked_and_defaults_are_seen():
    @checked(x="b c", mask="b", scale="c")
    def masked(x, mask=None, *, scale=np.ones(3)):  # noqa: B008
        return x

    masked(np.zeros((2, 3)))
    masked(np.zeros((2, 3)), np.zeros(2))
    with pytest.raises(ContractError, match="argument:   mask"):
        masked(np.zeros((2, 3)), np.zeros(3))
    with pytest.raises(ContractError, match="argument:   scale"):
        masked(np.zeros((2, 4)))
    with pytest.raises(ContractError, match="argument:   scale"):
        masked(np.zeros((2, 3)), scale=np.ones(4))


def test_sizes_from_an_object():
    class Layer:
        window = 4

        @checked(x="b (n window)", bind="self.window", returns="b n")
        def pool(self, x):
            return x.reshape(len(x), -1, self.window).mean(-1)

    assert Layer().pool(np.zeros((2, 12))).shape == (2, 3)
    with pytest.raises(ContractError):
        Layer().pool(np.zeros((2, 13)))


def test_names_that_clash_go_into_a_mapping():
    @checked({"returns": "a b", "bind": Contract("b")})
    def odd(returns, bind):
        return returns @ bind

    assert odd(np.zeros((2, 3)), np.zeros(3)).shape == (2,)
    with pytest.raises(ContractError, match="argument:   bind"):
        odd(np.zeros((2, 3)), np.zeros(2))


def test_mistakes_in_the_decorator_show_at_once():
    with pytest.raises(ArgumentError, match=r"`imag` is not a parameter.*did you mean `image`"):
        checked(imag="a b")(lambda image: image)
    with pytest.raises(ArgumentError, match="`win` is not a parameter"):
        checked(x="a win", bind="win")(lambda x: x)
    with pytest.raises(ArgumentError, match="`rest` is not a parameter"):
        checked(rest="a")(lambda *rest: rest)
    with pytest.raises(ValueError, match="bad contract"):
        checked(x="a *")(lambda x: x)

    def steps(x):
        yield x

    with pytest.raises(ArgumentError, match="is a generator"):
        checked(x="a", returns="a")(steps)
    with pytest.raises(ArgumentError, match="a contract is written as text"):
        checked(x=5)(lambda x: x)  # pyright: ignore[reportArgumentType]


def test_coroutines_are_checked_when_they_end():
    @checked(x="a b", returns="b a")
    async def turned(x, right=True):
        await asyncio.sleep(0)
        return x.T if right else x

    assert asyncio.iscoroutinefunction(turned)
    assert asyncio.run(turned(np.zeros((2, 3)))).shape == (3, 2)
    with pytest.raises(ContractError, match="argument:   result"):
        asyncio.run(turned(np.zeros((2, 3)), right=False))


def test_a_forgotten_return_is_caught():
    @checked(x="a b", returns="b a")
    def forgot(x):
        x.T  # noqa: B018

    with pytest.raises(ContractError, match=r"`.*forgot` returned None"):
        forgot(np.zeros((2, 3)))


def test_parameters_of_every_kind():
    @checked(a="n", b="n", c="n")
    def kinds(a, /, b, *rest, c=None, **more):
        return len(rest)

    x, y = np.zeros(3), np.zeros(4)
    assert kinds(x, x, *[y] * 1500, c=x, a=y) == 1500
    with pytest.raises(ContractError, match="argument:   c"):
        kinds(x, x, c=y)
    with pytest.raises(ArgumentError, match="`bind` names `n`"):
        checked(x="n", bind="n")(lambda x, n: x)(x, 2.5)


def test_the_function_is_named_and_torchs_own_frames_are_not():
    class Layer(torch.nn.Module):
        @checked(x="b 3")
        def forward(self, x):
            return x

    with pytest.raises(ContractError) as caught:
        Layer()(torch.zeros(2, 4))
    assert "at:         test_checked.py" in str(caught.value)
    assert "function:   test_the_function_is_named" in str(caught.value)
    assert "Layer.forward" in str(caught.value)


def test_a_bound_size_is_not_negative():
    @checked(x="a+b", bind="a")
    def taken(x: torch.Tensor, a: int) -> torch.Tensor:
        return x

    assert taken(torch.ones(3), 1).shape == (3,)
    with pytest.raises(ArgumentError, match="`bind` names `a`, and a size cannot be negative"):
        taken(torch.ones(3), -1)
