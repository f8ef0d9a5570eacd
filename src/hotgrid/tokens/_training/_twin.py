"""Training in plain Python: slow, short, and the judge of the fast one.

Byte pair encoding learns its tokens from words and how often each occurs:

1. Every word starts as single bytes, numbered as `alphabet` says.
2. All neighbours in all words are counted, each as often as its word occurs; of three equal
   neighbours in a row both pairs count.
3. The most frequent pair becomes a token and is merged wherever it occurs, from left to
   right. Among equally frequent pairs the one with the smaller left token wins, then the one
   with the smaller right token.
4. Again from 2, until the vocabulary is full or no pair is frequent enough.

The bytes of a pair may be those of a token that already exists, made of other parts: then
the pair is joined to that token and the vocabulary does not grow. Here everything is counted
again for every token; the trainer of the native core must find the same tokens.
"""

import itertools
from collections import Counter
from collections.abc import Mapping

from hotgrid.tokens._files import letters, to_bytes


def alphabet() -> bytes:
    """The 256 bytes in the order GPT-2, and every encoding since, numbers them."""
    return to_bytes("".join(sorted(letters())))


def train_twin(
    words: Mapping[bytes, int],
    tokens: int,
    min_frequency: int = 1,
    max_token_length: int | None = None,
) -> list[bytes]:
    """The tokens that words teach, in order, the 256 bytes first.

    Args:
        words: Words and how often each occurs.
        tokens: How many tokens are wanted; fewer if there are no more pairs.
        min_frequency: How often a pair must occur to become a token.
        max_token_length: Bytes a token may have at most.

    Example:
        >>> train_twin({b"abab": 2, b"abc": 1}, 258)[256:]
        [b'ab', b'abab']
    """
    made = [bytes([byte]) for byte in alphabet()]
    numbers = {token: number for number, token in enumerate(made)}
    spelled = {word: [numbers[bytes([byte])] for byte in word] for word in words}
    while len(made) < tokens:
        pairs: Counter[tuple[int, int]] = Counter()
        for word, parts in spelled.items():
            for left, right in itertools.pairwise(parts):
                if (
                    max_token_length is None
                    or len(made[left] + made[right]) <= max_token_length
                ):
                    pairs[left, right] += words[word]
        if not pairs:
            break
        best = min(pairs, key=lambda pair: (-pairs[pair], pair))
        if pairs[best] < min_frequency:
            break
        joined = made[best[0]] + made[best[1]]
        if joined not in numbers:
            numbers[joined] = len(made)
            made.append(joined)
        spelled = {word: _join(parts, best, numbers[joined]) for word, parts in spelled.items()}
    return made


def _join(parts: list[int], pair: tuple[int, int], number: int) -> list[int]:
    joined: list[int] = []
    for part in parts:
        # `joined` ends with the left half only if that was not just joined itself.
        if joined and (joined[-1], part) == pair:
            joined[-1] = number
        else:
            joined.append(part)
    return joined
