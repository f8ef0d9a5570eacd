"""Questions with choices, scored by likelihood, and questions with an exact answer."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from hotgrid.chat._generate._engine import Engine
from hotgrid.chat._generate._sampling import Sampling
from hotgrid.chat._model._folder import LanguageModel
from hotgrid.chat._model._vocabulary import beginning
from hotgrid.chat._template import ChatMessage, render
from hotgrid.chat._training._conversations import text_of
from hotgrid.data import Shards
from hotgrid.errors import ArgumentError, DamagedError

from ._text import continuation_likelihoods

# A sign behind a digit is a minus between two numbers.
_NUMBER = re.compile(r"(?:(?<!\d)[-\N{MINUS SIGN}])?(?:\d[\d,]*(?:\.\d+)?|\.\d+)")


@dataclass(frozen=True)
class ChoiceScore:
    """How often the right choice was the likeliest one.

    Attributes:
        accuracy: By likelihood.
        by_byte: By likelihood for each byte, which does not favour short choices.
        chance: What guessing would give.
        questions: How many questions.
    """

    accuracy: float
    by_byte: float
    chance: float
    questions: int


@dataclass(frozen=True)
class AnswerScore:
    """How often the answer was right.

    Attributes:
        accuracy: The share of right answers.
        questions: How many questions.
        too_long: How many of them are too long for the model, and so not answered.
        examples: The first questions: what was expected, and the reply.
    """

    accuracy: float
    questions: int
    too_long: int
    examples: tuple[tuple[str, str], ...]


def prompt_of(language: LanguageModel, question: str) -> list[int]:
    """The tokens that ask a question: a conversation if the model knows them."""
    if language.card.get("tuned"):
        return render(language.encoding, [ChatMessage("user", question)], reply=True)[0]
    text = language.encoding.encode_ordinary(f"Question: {question}\nAnswer:")
    return [beginning(language.encoding), *text]


def score_choices(
    language: LanguageModel,
    paths: Sequence[str | Path],
    *,
    limit: int | None = None,
    batch: int = 16,
) -> ChoiceScore:
    """Answer questions by the likelihood of each choice.

    Args:
        language: The model.
        paths: Files of JSON lines or parquet with `question`, `choices`, and `answer`: the
            right one, its place from 0, or its letter.
        limit: The most questions.
        batch: How many choices are computed at once.

    Raises:
        DamagedError: A row is not such a question.
        ArgumentError: There are no questions.
    """
    rows = _rows(paths, limit)
    pairs: list[tuple[list[int], list[int]]] = []
    questions: list[tuple[list[str], int]] = []
    space = "" if language.card.get("tuned") else " "
    for row in rows:
        question, choices, right = _choices(row)
        prompt = prompt_of(language, question)
        pairs += [(prompt, language.encoding.encode_ordinary(space + each)) for each in choices]
        questions.append((choices, right))
    scores = iter(continuation_likelihoods(language, pairs, batch=batch))
    plain = by_byte = 0
    for choices, right in questions:
        own = [next(scores) for _ in choices]
        each = [
            score / len(text.encode(errors="replace"))
            for score, text in zip(own, choices, strict=True)
        ]
        plain += own.index(max(own)) == right
        by_byte += each.index(max(each)) == right
    count = len(questions)
    chance = sum(1 / len(choices) for choices, _ in questions) / count
    return ChoiceScore(plain / count, by_byte / count, chance, count)


def score_answers(
    language: LanguageModel,
    paths: Sequence[str | Path],
    *,
    limit: int | None = None,
    batch: int = 16,
    max_tokens: int = 256,
) -> AnswerScore:
    """Answer questions, and compare what follows `####`, or the last number, or the text.

    Args:
        language: The model.
        paths: Files of JSON lines or parquet with `question` and `answer`, such as GSM8K.
        limit: The most questions.
        batch: How many are answered at once.
        max_tokens: The most tokens of an answer.

    Raises:
        DamagedError: A row is not such a question.
        ArgumentError: There are no questions.
    """
    rows = _rows(paths, limit)
    for row in rows:
        if not isinstance(row, dict) or "question" not in row or "answer" not in row:
            raise DamagedError(f"a row has no `question` and `answer`: {str(row)[:120]}")
    # A model that continues texts would go on with questions of its own, and their answers.
    stop = () if language.card.get("tuned") else ("\nQuestion:",)
    greedy = Sampling(temperature=0, max_tokens=max_tokens, stop=stop)
    prompts = [prompt_of(language, text_of(row, "question")) for row in rows]
    wanted = [final_answer(text_of(row, "answer")) for row in rows]
    with Engine(language, slots=batch, queue=len(rows)) as engine:
        asked = [
            engine.submit(each, greedy) if len(each) < engine.limit else () for each in prompts
        ]
        replies = ["".join(piece.text for piece in each) for each in asked]
    right = sum(
        final_answer(reply) == each for reply, each in zip(replies, wanted, strict=True)
    )
    examples = tuple(zip(wanted[:3], replies[:3], strict=True))
    return AnswerScore(right / len(rows), len(rows), asked.count(()), examples)


def final_answer(text: str) -> str:
    """Return the final answer of a worked solution, in a normal form.

    Example:
        >>> final_answer("48 / 2 = 24, so 48 + 24 = 72 clips. #### 72")
        '72'
        >>> final_answer("It costs $1,200.50."), final_answer("Yes.")
        ('1200.5', 'yes')
    """
    marked = text.rpartition("####")
    found = _NUMBER.findall(marked[2])
    if not found:
        return marked[2].strip().strip(".").casefold()
    number = (found[0] if marked[1] else found[-1]).replace(",", "")
    exact = Decimal(number.replace("\N{MINUS SIGN}", "-"))
    return f"{exact.normalize() + 0:f}"


def _rows(paths: Sequence[str | Path], limit: int | None) -> list[Any]:
    if limit is not None and limit < 1:
        raise ArgumentError(f"`limit` must be at least 1, got {limit}")
    shards = Shards(paths, column=None, shuffle=False)
    found = [
        document.text
        for _, document in zip(range(limit or 1 << 62), shards.read(epochs=1), strict=False)
    ]
    if not found:
        raise ArgumentError(f"there is no question in `{paths[0]}`")
    return found


def _choices(row: Any) -> tuple[str, list[str], int]:
    shown = str(row)[:120]
    if not isinstance(row, dict) or not {"question", "choices", "answer"} <= row.keys():
        raise DamagedError(f"a row has no `question`, `choices` and `answer`: {shown}")
    given = row["choices"]
    if not isinstance(given, list) or not given or not all(map(_is_choice, given)):
        raise DamagedError(f"`choices` is not a list of texts that are not empty: {shown}")
    choices = [str(each) for each in given]
    answer = row["answer"]
    letters = [chr(ord("A") + place) for place in range(len(choices))]
    if isinstance(answer, str) and answer in choices:
        return text_of(row, "question"), choices, choices.index(answer)
    if isinstance(answer, str) and answer.strip().upper() in letters:
        return text_of(row, "question"), choices, letters.index(answer.strip().upper())
    if type(answer) is int and 0 <= answer < len(choices):
        return text_of(row, "question"), choices, answer
    raise DamagedError(f"`answer` {answer!r} is not one of {len(choices)} choices: {shown}")


def _is_choice(given: object) -> bool:
    return bool(given) if isinstance(given, str) else type(given) in (int, float)
