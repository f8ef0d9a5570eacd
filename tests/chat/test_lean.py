"""The lean step against the model itself."""

import pytest
import torch

from hotgrid.chat._generate._lean import LeanStep
from hotgrid.kernels import compress

from .test_generate import KINDS
from .tiny import random_gpt

MORE = {
    "gain": {"norm": "rms", "heads": 4, "kv_heads": 1},
    "head size": {"head_size": 6, "embed_norm": False},
    "no norm": {"qk_norm": False, "activation": "gelu"},
}


@pytest.mark.parametrize("kind", [*KINDS, *MORE])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["f32", "f64"])
def test_steps_are_those_of_the_model(kind: str, dtype: torch.dtype) -> None:
    model = random_gpt(2, **{**KINDS, **MORE}[kind]).to(dtype)
    lean = LeanStep.of(model)
    if kind == "mixing":
        assert lean is None
        return
    assert lean is not None
    tokens = torch.randint(0, 261, (1, 30), generator=torch.Generator().manual_seed(0))
    memory = model.memory(1, 40)
    with torch.inference_mode():
        whole = model(tokens)
        model.features(tokens[:, :9], memory=memory)
        for place in range(9, 30):
            found = lean(int(tokens[0, place]), memory)
            close = 1e-11 if dtype is torch.float64 else 1e-4
            torch.testing.assert_close(found, whole[:, place], rtol=close, atol=close)


def test_compressed_models_are_fed_through_their_own_layers() -> None:
    model = random_gpt(2, size=64)
    small = compress(model, form="int8")
    lean = LeanStep.of(small)
    assert lean is not None
    memory = small.memory(1, 8)
    with torch.inference_mode():
        whole = small(torch.tensor([[1, 2, 3]]))
        for place, token in enumerate((1, 2, 3)):
            found = lean(token, memory)
            # Inputs are rounded to 8 bits, for one row or for all: a last bit may differ.
            torch.testing.assert_close(found, whole[:, place], rtol=5e-3, atol=5e-3)
