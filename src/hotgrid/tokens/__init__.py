"""tokens: byte pair encoding, fast and exact. Depends on `config`, `errors` and `_native`.

`get_encoding("o200k_base")` yields exactly tiktoken's tokens, faster, as lists or arrays, with
counts, offsets, streams and HuggingFace's file format. `Encoding` is one vocabulary with its
pattern and its special tokens. `_twin.py` is the same algorithm in plain Python; tests compare
the native core with it and with tiktoken. Where the native core is not built, `_plain_core.py`
replaces it. Never imports torch, and numpy only when an array is needed.
"""

from ._batches import FlatBatch as FlatBatch, PaddedBatch as PaddedBatch
from ._encoding import Encoding as Encoding
from ._files import (
    load_huggingface as load_huggingface,
    load_tiktoken as load_tiktoken,
    save_huggingface as save_huggingface,
    save_tiktoken as save_tiktoken,
)
from ._models import encoding_name_for_model as encoding_name_for_model
from ._registry import (
    DEFAULT_ENCODING as DEFAULT_ENCODING,
    encoding_for_model as encoding_for_model,
    get_encoding as get_encoding,
    list_encoding_names as list_encoding_names,
)
from ._training import train as train
