"""Claim: a contract of nine dimensions is checked or unpacked in under 300 ns from Python.

The contract is the one the Rust crate bimm-contracts publishes 168 ns (assert) and 177 ns
(unpack) for: `[_, b, ..., h*p, w*p, z^3, c]`, p and c given. Peers run in the same process.
None of them can express the whole contract, so each checks the closest one it can, which the
table names.

    python benchmarks/bench_contracts.py
"""

from typing import Any

import numpy as np
from options import parser
from report import absent, nanoseconds, report, same

from hotgrid import _native
from hotgrid.contracts import Contract, PeriodicContract, checked

SHAPE = (12, 2, 1, 2, 3, 12, 8, 27, 5)
GIVEN = {"p": 4, "c": 5}
KEYS = ("b", "h", "w", "z")
CONTRACT = Contract("_, b, ..., h*p, w*p, z^3, c")
PERIODIC = PeriodicContract(CONTRACT)


def by_hand(shape: tuple[int, ...], p: int, c: int) -> tuple[int, int, int, int]:
    """What one would write without contracts; its messages say nothing."""
    assert len(shape) >= 6
    _, b, *_, height, width, cube, channels = shape
    assert height % p == 0
    assert width % p == 0
    z = round(cube ** (1 / 3))
    assert z**3 == cube
    assert channels == c
    return b, height // p, width // p, z


def plain_asserts(shape: tuple[int, ...], p: int) -> tuple[int, int, int, int]:
    """The four-dimension case of the facts: b, h*p, w*p, c."""
    assert len(shape) == 4
    b, height, width, c = shape
    assert height % p == 0
    assert width % p == 0
    return b, height // p, width // p, c


def peers(names: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Rows of the libraries that are installed: name, what is done, statement."""
    rows = []
    names["array"] = np.zeros((2, 12, 8, 5), dtype=np.float32)
    try:
        import einops

        names["parse_shape"] = einops.parse_shape
        rows.append(
            ("einops.parse_shape", "names of 4 dimensions", "parse_shape(array, 'b h w c')")
        )
    except ImportError as problem:
        absent("einops", problem)
    try:
        from beartype import beartype
        from jaxtyping import Float, jaxtyped

        @jaxtyped(typechecker=beartype)
        def one(x: Float[np.ndarray, "b h w c"]) -> None:  # noqa: F722
            return None

        @jaxtyped(typechecker=beartype)
        def computed(
            x: Float[np.ndarray, "b {p}*3 w c"],  # noqa: F722
            p: int,
        ) -> Float[np.ndarray, "b {p}*3 w c"]:  # noqa: F722
            return x

        names |= {"jax_one": one, "jax_computed": computed}
        rows.append(("jaxtyping + beartype", "4 names", "jax_one(array)"))
        rows.append(
            ("jaxtyping + beartype", "4 names, arithmetic, result", "jax_computed(array, 4)")
        )
    except ImportError as problem:
        absent("jaxtyping + beartype", problem)
    return rows


@checked(x="b (h p) (w p) c", bind="p", returns="b (h p) (w p) c")
def decorated(x: Any, p: int) -> Any:
    """One argument and the result, as the jaxtyping row with arithmetic."""
    return x


def main() -> None:
    """Check that all agree, time all, keep the figures."""
    parser(__doc__, devices=("cpu",)).parse_args()
    same(
        {
            "Contract.unpack": lambda: CONTRACT.unpack(KEYS, SHAPE, GIVEN),
            "by hand": lambda: by_hand(SHAPE, 4, 5),
            "Contract.check": lambda: tuple(CONTRACT.check(SHAPE, GIVEN)[key] for key in KEYS),
            "plain Python solver": lambda: tuple(
                dict(CONTRACT._matcher.decide(GIVEN, SHAPE))[key]  # pyright: ignore
                for key in KEYS
            ),
        },
        (2, 3, 2, 3),
    )
    names: dict[str, Any] = {
        "contract": CONTRACT,
        "periodic": PERIODIC,
        "shape": SHAPE,
        "given": GIVEN,
        "keys": KEYS,
        "by_hand": by_hand,
        "asserts": plain_asserts,
        "small": (2, 12, 8, 3),
        "decorated": decorated,
        "decide": CONTRACT._matcher.decide,
    }
    ours = [
        ("hotgrid check", "9 dimensions", "contract.check(shape, given)"),
        ("hotgrid unpack", "9 dimensions, 4 keys", "contract.unpack(keys, shape, given)"),
        (
            "hotgrid periodic check",
            "9 dimensions, mostly not due",
            "periodic.check(shape, given)",
        ),
        ("hotgrid @checked", "argument and result", "decorated(array, 4)"),
        ("hotgrid without native core", "9 dimensions", "decide(given, shape)"),
        ("by hand", "9 dimensions, asserts", "by_hand(shape, 4, 5)"),
        ("by hand", "4 dimensions, asserts", "asserts(small, 4)"),
    ]
    rows = []
    others = peers(names)
    for name, what, statement in ours + others:
        time = nanoseconds(statement, names)
        rows.append({"contestant": name, "what": what, "ns": round(time, 1)})
    base = rows[0]["ns"]
    for row in rows:
        row["x check"] = round(row["ns"] / base, 2)
    report("contracts", rows, native=_native.available())


if __name__ == "__main__":
    main()
