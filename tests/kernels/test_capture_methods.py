"""`capture` on methods: each object has its own, and nothing is stored in the object."""

import copy
import gc
import weakref

import pytest
import torch
from torch import Tensor

from hotgrid.config import override
from hotgrid.errors import ArgumentError
from hotgrid.kernels import capture, compress

pytestmark = pytest.mark.usefixtures("traced_but_not_compiled")


class Base:
    @capture
    def moved(self, x: Tensor) -> Tensor:
        return x + 1


class Derived(Base):
    def moved(self, x: Tensor) -> Tensor:  # pyright: ignore[reportIncompatibleVariableOverride]
        return super().moved(x) * 10


def test_an_inherited_method_is_not_taken_for_the_one_that_calls_it():
    one, x = Derived(), torch.zeros(1)
    assert [float(one.moved(x)) for _ in range(3)] == [10, 10, 10]
    assert vars(one) == {}


class Calling(Base):
    @capture
    def grown(self, x: Tensor) -> Tensor:
        return self.moved(x) * 3


def test_a_captured_method_may_call_another_of_its_object():
    one, x = Calling(), torch.zeros(1)
    assert [float(one.grown(x)) for _ in range(2)] == [3, 3]
    assert float(one.moved(x)) == 1


class Explicit(Base):
    @capture
    def moved(self, x: Tensor) -> Tensor:
        return Base.moved(self, x) * 10


@pytest.mark.parametrize("enabled", ["auto", "off"])
def test_a_captured_method_may_call_that_of_its_base_through_the_class(enabled: str):
    with override({"compile.enabled": enabled}):
        one, x = Explicit(), torch.zeros(1)
        assert [float(one.moved(x)) for _ in range(2)] == [10, 10]
        assert float(Base.moved(one, x)) == 1


class Layered(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(64, 32)

    @capture
    def answer(self, x: Tensor) -> Tensor:
        return self.layer(x)


def test_a_copy_has_a_method_of_its_own():
    one, x = Layered(), torch.randn(2, 64)
    first = one.answer(x)
    again = copy.copy(one)
    again._modules = {"layer": torch.nn.Linear(64, 32)}
    assert torch.equal(again.answer(x), again.layer(x))
    assert torch.equal(one.answer(x), first)


def test_a_compressed_model_computes_with_its_compressed_layers():
    model, x = Layered(), torch.randn(2, 64)
    with torch.no_grad():
        exact = model.answer(x)
        small = compress(model, "1bit", force=True)
        assert torch.equal(small.answer(x), small.layer(x))  # pyright: ignore[reportCallIssue]
        assert not torch.equal(small.layer(x), exact)  # pyright: ignore[reportCallIssue]
        assert torch.equal(model.answer(x), exact)


class Holding:
    def __init__(self, held: Tensor) -> None:
        self.held = held

    @capture
    def scaled(self, x: Tensor) -> Tensor:
        return x * self.held

    @capture
    def grown(self, x: Tensor, y: Tensor) -> Tensor:
        return x.add_(y) * self.held


def test_an_object_is_freed_after_its_captured_method_has_run():
    x, alive = torch.ones(4), []
    for needs_gradient in (False, True, False):
        one = Holding(torch.ones(4))
        one.scaled(x.clone().requires_grad_(needs_gradient))
        one.grown(torch.ones(4), torch.ones(4))
        alive.append(weakref.ref(one))
        del one
    gc.collect()
    assert [each() for each in alive] == [None, None, None]
    assert Holding.scaled._methods == Holding.grown._methods == {}


def test_a_static_method_has_no_object():
    class Static:
        __slots__ = ()

        @capture
        @staticmethod
        def doubled(x: Tensor) -> Tensor:
            return x * 2

    assert [Static().doubled(torch.ones(1)).item() for _ in range(2)] == [2, 2]


def test_an_object_without_weak_references_is_refused():
    class Slotted:
        __slots__ = ("held",)

        @capture
        def step(self, x: Tensor) -> Tensor:
            return x

    with pytest.raises(ArgumentError, match=r"weak references.*add `__weakref__`"):
        Slotted().step(torch.ones(1))
