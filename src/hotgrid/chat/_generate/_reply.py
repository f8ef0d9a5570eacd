"""`Reply`: a sequence that grows token by token, and when it ends."""

from collections.abc import Sequence

from hotgrid.chat._model._folder import LanguageModel
from hotgrid.chat._model._gpt import GPT
from hotgrid.errors import ArgumentError, UnstableError

from ._sampling import Likelihood, Sampling, fresh_seed, uniform
from ._text import Finish, Piece, TextStream


def length_limit(model: GPT) -> int:
    """Return the most tokens of a sequence, prompt and reply together."""
    return model.config.context * model.config.stretch


class Reply:
    """A prompt and what follows it.

    Special tokens, and those beyond the vocabulary, end a reply: they have no text.

    Args:
        language: The model, for its vocabulary.
        prompt: The tokens to continue.
        sampling: How.
        limit: The most tokens of prompt and reply together.

    Attributes:
        tokens: All tokens so far.
        seed: Of its numbers; see `uniform`.
        prompt: How many of them are the prompt's.
        finish: Why it ended; None while it has not.

    Raises:
        ArgumentError: The prompt is empty, too long, or has what is not a token.
    """

    def __init__(
        self, language: LanguageModel, prompt: Sequence[int], sampling: Sampling, limit: int
    ) -> None:
        self.tokens, self.prompt = list(prompt), len(prompt)
        self.sampling, self._limit = sampling, limit
        self._encoding = language.encoding
        vocabulary = language.model.config.vocabulary
        if not self.tokens:
            raise ArgumentError("the prompt is empty; give at least one token")
        if self.prompt >= limit:
            raise ArgumentError(
                f"the prompt has {self.prompt} tokens, and at most {limit - 1} leave a place "
                "for a reply; shorten it"
            )
        wrong = next((t for t in self.tokens if not 0 <= t < vocabulary), None)
        if wrong is not None:
            raise ArgumentError(f"{wrong} is not one of the model's {vocabulary} tokens")
        self.seed = fresh_seed() if sampling.seed is None else sampling.seed
        self._stream = TextStream(language.encoding, sampling.stop)
        self._untold: list[tuple[int, Likelihood | None]] = []
        self._new: list[int] = []
        self._likelihoods: list[Likelihood] = []
        self.finish: Finish | None = None
        self._end: Finish | None = None

    def __len__(self) -> int:
        """How many tokens it has beside the prompt."""
        return len(self.tokens) - self.prompt

    def uniform(self, ahead: int = 0) -> float:
        """Return the number that the next token is drawn with, or one further ahead."""
        return uniform(self.seed, len(self) + ahead)

    @property
    def left(self) -> int:
        """The most tokens that may still come."""
        return min(self.sampling.max_tokens - len(self), self._limit - len(self.tokens))

    @property
    def ended(self) -> bool:
        """Whether no token follows; its last piece may not have been told yet."""
        return self._end is not None

    def add(self, token: int, likelihood: Likelihood | None = None) -> Piece | None:
        """Add the next token, and return a piece if there is new text or the end.

        Raises:
            UnstableError: No token could be chosen, as the logits are not finite.
        """
        self.accept((token,), likelihood)
        return self.tell()

    def accept(self, tokens: Sequence[int], likelihood: Likelihood | None = None) -> None:
        """Add the next tokens, up to the end; their text is left for `tell`.

        Raises:
            UnstableError: No token could be chosen, as the logits are not finite.
        """
        left, known, special = (
            self.left,
            self._encoding.n_vocab,
            self._encoding.is_special_token,
        )
        for token in tokens:
            if token < 0:
                raise UnstableError(
                    "the model's logits are not finite after "
                    f"{len(self.tokens)} tokens; its weights or its dtype are at fault"
                )
            if token >= known or special(token):
                self._end = "stop"
                return
            self.tokens.append(token)
            self._untold.append((token, likelihood))
            left -= 1
            if left <= 0:
                self._end = "length"
                return

    def tell(self) -> Piece | None:
        """Return a piece if the tokens since the last one have text, or are the end."""
        text = self._text()
        if self._end is not None:
            return self.end(self._end, text)
        return self._piece(text) if text else None

    def end(self, finish: Finish, text: str = "") -> Piece:
        """End it, and return its last piece."""
        text += self._text()
        self.finish = self._end = "stop" if self._stream.stopped else finish
        return self._piece(text + self._stream.close())

    def _text(self) -> str:
        """Return the text of tokens that were not told; a stop text ends the reply."""
        text, untold = "", self._untold
        self._untold = []
        # A stop text may be complete after any token, and those behind it do not count.
        together = 1 if self.sampling.stop else max(1, len(untold))
        for start in range(0, len(untold), together):
            some = untold[start : start + together]
            tokens = [token for token, _ in some]
            self._new += tokens
            self._likelihoods += [each for _, each in some if each is not None]
            text += self._stream.push(*tokens)
            if self._stream.stopped:
                self._end = "stop"
                break
        return text

    def _piece(self, text: str) -> Piece:
        piece = Piece(text, tuple(self._new), tuple(self._likelihoods), self.finish)
        self._new, self._likelihoods = [], []
        return piece
