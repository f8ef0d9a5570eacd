"""The "did you mean" hint of error messages."""

from collections.abc import Iterable


def near(
    word: object,
    words: Iterable[str],
    hint: str = "; did you mean `{}`?",
    *,
    cutoff: float = 0.6,
) -> str:
    """Return a "did you mean" hint with the most similar of the valid words.

    Args:
        word: What was given.
        words: The valid words. Case only decides between words that are otherwise equal.
        hint: The text, with `{}` where the similar word goes.
        cutoff: How similar they must be, from 0 to 1.

    Returns:
        The hint, or an empty text if none is similar.

    Example:
        >>> f"there is no model `heet`{near('heet', ['life', 'heat'])}"
        'there is no model `heet`; did you mean `heat`?'
        >>> near("flow", ["life", "heat"])
        ''
    """
    import difflib  # only needed once something is wrong

    right = list(words)
    folded = [each.casefold() for each in right]
    found = difflib.get_close_matches(str(word).casefold(), folded, 1, cutoff)
    alike = [each for each in right if each.casefold() in found]
    best = difflib.get_close_matches(str(word), alike, 1, 0.0)
    return hint.format(best[0]) if best else ""
