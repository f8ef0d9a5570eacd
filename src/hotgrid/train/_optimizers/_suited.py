"""Which modules cannot be trained, said before torch does."""

from torch import nn
from torch.nn.parameter import is_lazy

from hotgrid.errors import ArgumentError


def expect_shapes(module: nn.Module) -> None:
    """Refuse a module with parameters or buffers that have no shape before the first batch."""
    for path, each in module.named_modules():
        own = (*each.parameters(recurse=False), *each.buffers(recurse=False))
        if any(map(is_lazy, own)):
            name = f"{type(each).__name__} `{path}`" if path else type(each).__name__
            raise ArgumentError(
                f"{name} has parameters or buffers without a shape; "
                "pass a batch through the module first"
            )


def expect_dense(module: nn.Module) -> None:
    """Refuse a module whose gradients are sparse."""
    for path, each in module.named_modules():
        sparse = isinstance(each, nn.Embedding | nn.EmbeddingBag) and each.sparse
        if sparse and each.weight.requires_grad:
            raise ArgumentError(
                f"`{path}` is {type(each).__name__}(sparse=True), and sparse gradients are not "
                "supported; make it without `sparse`, or freeze it"
            )
