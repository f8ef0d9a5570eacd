"""`.tiktoken` files: a line for each token, its bytes in base64, a space and its rank."""

import base64
from collections.abc import Mapping
from pathlib import Path

from hotgrid.errors import ArgumentError
from hotgrid.files import whole_file
from hotgrid.tokens._encoding import Encoding
from hotgrid.tokens._patterns import CL100K


def load_tiktoken(
    path: str | Path,
    *,
    name: str | None = None,
    pat_str: str = CL100K,
    special_tokens: Mapping[str, int] | None = None,
) -> Encoding:
    r"""An encoding from a `.tiktoken` file.

    Args:
        path: The file.
        name: What to call the encoding; by default as the file without its suffix.
        pat_str: The pattern that cuts texts into pieces, or its name (see `Encoding`); by
            default that of cl100k_base. The file does not say it.
        special_tokens: Special tokens and their numbers, which the file does not say either.

    Raises:
        ArgumentError: The file cannot be read, it is empty, or a line is not a token and a
            rank.

    Example:
        >>> Path("tiny.tiktoken").write_bytes(b"aA== 0\naQ== 1\naGk= 2\n")
        21
        >>> load_tiktoken("tiny.tiktoken").encode("hihi")
        [2, 2]
    """
    path = Path(path)
    try:
        data = path.read_bytes()
    except OSError as problem:
        raise ArgumentError(f"cannot read `{path}`: {problem.strerror or problem}") from None
    return Encoding._from_rank_file(
        name or path.stem,
        data,
        f"`{path}`",
        pat_str=pat_str,
        special_tokens=dict(special_tokens or {}),
    )


def save_tiktoken(encoding: Encoding, path: str | Path) -> None:
    """Write the ranks of an encoding as a `.tiktoken` file, in order.

    Such a file holds neither the pattern nor the special tokens.

    Args:
        encoding: What to write.
        path: Where to; an existing file is replaced.

    Raises:
        ArgumentError: The file cannot be written, or the encoding merges by a list of pairs,
            which ranks cannot say.

    Example:
        >>> ranks = {b"b": 1, b"a": 0}
        >>> enc = Encoding("ab", pat_str=".", mergeable_ranks=ranks, special_tokens={})
        >>> save_tiktoken(enc, "ab.tiktoken")
        >>> Path("ab.tiktoken").read_text().splitlines()
        ['YQ== 0', 'Yg== 1']
    """
    if encoding._merges is not None:
        raise ArgumentError(
            f"{encoding!r} merges by a list of pairs, which a `.tiktoken` file cannot hold; "
            "use `save_huggingface`"
        )
    if encoding._normalises:
        raise ArgumentError(
            f"{encoding!r} normalises texts, which a `.tiktoken` file cannot record; "
            "use `save_huggingface`"
        )
    lines = [
        base64.b64encode(token) + f" {rank}\n".encode()
        for token, rank in sorted(encoding._mergeable_ranks.items(), key=lambda pair: pair[1])
    ]
    with whole_file(Path(path)) as aside:
        aside.write_bytes(b"".join(lines))
