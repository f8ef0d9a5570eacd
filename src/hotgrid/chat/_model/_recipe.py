"""From the depth of a GPT to its width, its batch, its steps and its rates."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from hotgrid.errors import ArgumentError, near

from ._config import GPTConfig

_HEAD = 128
# The rates were tuned by nanochat's authors for this batch, in tokens, and depth.
_BATCH, _DEPTH = 2**19, 12


@dataclass(frozen=True)
class _Rule:
    """A rule that derives a value from those before it, and the same in words."""

    words: str
    value: Callable[[Mapping[str, Any]], Any]


def _scaling(depth: int, vocabulary: int, size: int) -> int:
    """Parameters that the number of tokens goes by: matrices of the blocks, and the head."""
    return 12 * size * size * depth + vocabulary * size


def _size(depth: int) -> int:
    return -(-depth * 64 // _HEAD) * _HEAD


def _batch(v: Mapping[str, Any]) -> int:
    reference = v["ratio"] * _scaling(_DEPTH, v["vocabulary"], _size(_DEPTH))
    ideal = _BATCH * (v["tokens"] / reference) ** 0.383
    return 2 ** round(math.log2(ideal))


def _decay(v: Mapping[str, Any]) -> float:
    reference = v["ratio"] * _scaling(_DEPTH, v["vocabulary"], _size(_DEPTH))
    return 0.28 * math.sqrt(v["batch_tokens"] / _BATCH) * reference / v["tokens"]


def _rate(base: float, *, by_size: bool = True) -> Callable[[Mapping[str, Any]], float]:
    def value(v: Mapping[str, Any]) -> float:
        scale = math.sqrt(v["batch_tokens"] / _BATCH)
        return base * scale * ((v["size"] / 768) ** -0.5 if by_size else 1.0)

    return value


# In this order: each rule sees the values above it.
RULES: Mapping[str, _Rule] = MappingProxyType(
    {
        "vocabulary": _Rule("the tokenizer's", lambda v: 32_768),
        "context": _Rule("2048", lambda v: 2048),
        "size": _Rule("64 x depth, up to a multiple of 128", lambda v: _size(v["depth"])),
        "heads": _Rule("size / 128", lambda v: max(1, v["size"] // _HEAD)),
        "kv_heads": _Rule("heads", lambda v: v["heads"]),
        "ratio": _Rule("tokens for a parameter: 12", lambda v: 12.0),
        "tokens": _Rule(
            "ratio x (matrices + head)",
            lambda v: max(
                1, int(v["ratio"] * _scaling(v["depth"], v["vocabulary"], v["size"]))
            ),
        ),
        "batch_tokens": _Rule(
            "2^19 x (tokens / tokens of depth 12)^0.383, to a power of 2", _batch
        ),
        "steps": _Rule(
            "tokens / batch_tokens", lambda v: max(1, round(v["tokens"] / v["batch_tokens"]))
        ),
        "matrix_rate": _Rule("0.02 x sqrt(batch / 2^19)", _rate(0.02, by_size=False)),
        "embedding_rate": _Rule("0.3 x sqrt(batch / 2^19 x 768 / size)", _rate(0.3)),
        "head_rate": _Rule("0.008 x sqrt(batch / 2^19 x 768 / size)", _rate(0.008)),
        "scalar_rate": _Rule("0.5 x sqrt(batch / 2^19)", _rate(0.5, by_size=False)),
        "decay": _Rule("0.28 x sqrt(batch / 2^19) x tokens of depth 12 / tokens", _decay),
        "warmup": _Rule("40 steps, at most a tenth", lambda v: min(40, v["steps"] // 10)),
        "warmdown": _Rule("65 % of the steps", lambda v: int(0.65 * v["steps"])),
        "final": _Rule("rates end at 5 %", lambda v: 0.05),
    }
)


# These may be 0; all others are above it.
_FROM_ZERO = ("matrix_rate", "embedding_rate", "head_rate", "scalar_rate", "decay", "warmup",
              "warmdown", "final")  # fmt: skip


def _expect_sense(name: str, value: Any) -> None:
    least = name in _FROM_ZERO
    if not math.isfinite(value) or value < 0 or (value == 0 and not least):
        expected = "0 or more" if least else "above 0"
        raise ArgumentError(f"`{name}` must be {expected}, got {value}")


@dataclass(frozen=True)
class Recipe:
    """Everything that training a GPT of some depth needs, and where each value is from.

    Attributes:
        values: By name; `depth` and those of `RULES`.
        given: Names that were given and not derived.

    Example:
        >>> recipe = Recipe.of(12)
        >>> recipe["size"], recipe["heads"], recipe["batch_tokens"]
        (768, 6, 524288)
        >>> Recipe.of(12, size=512)["heads"]
        4
    """

    values: Mapping[str, Any]
    given: frozenset[str]

    @classmethod
    def of(cls, depth: int, **given: Any) -> "Recipe":
        """Derive all values from the depth; what is given is taken as it is.

        Raises:
            ArgumentError: A name is unknown, the depth is below 1, or a value makes no sense.
        """
        if depth < 1:
            raise ArgumentError(f"`depth` must be at least 1, got {depth}")
        for name in given:
            if name not in RULES:
                raise ArgumentError(
                    f"a recipe has no `{name}`{near(name, RULES)}; it has {', '.join(RULES)}"
                )
        given = {name: value for name, value in given.items() if value is not None}
        for name, value in given.items():
            _expect_sense(name, value)
        values: dict[str, Any] = {"depth": depth}
        for name, rule in RULES.items():
            values[name] = given[name] if name in given else rule.value(values)
        return cls(MappingProxyType(values), frozenset(given))

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    def config(self, **options: Any) -> GPTConfig:
        """Return the shape of the model; options are those of `GPTConfig`."""
        chosen = {
            name: self[name] for name in ("vocabulary", "context", "size", "heads", "kv_heads")
        }
        return GPTConfig(layers=self["depth"], **{**chosen, **options})

    def rows(self) -> list[tuple[str, str, str]]:
        """Return name, value and origin of each value, for a table."""
        return [
            (
                name,
                f"{value:g}" if isinstance(value, float) else f"{value:,}",
                "given" if name in self.given or name == "depth" else RULES[name].words,
            )
            for name, value in self.values.items()
        ]
