"""The hint at the word that was probably meant."""

from collections.abc import Iterable


def near(
    word: object,
    words: Iterable[str],
    hint: str = "; did you mean `{}`?",
    *,
    cutoff: float = 0.6,
) -> str:
    """Return a hint at the most similar of the words that are right, for an error's text.

    Args:
        word: What was given.
        words: What would have been right. Case does not matter.
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

    by_folded = {each.casefold(): each for each in words}
    found = difflib.get_close_matches(str(word).casefold(), by_folded, 1, cutoff)
    return hint.format(by_folded[found[0]]) if found else ""
