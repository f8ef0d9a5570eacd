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
    """A prompt and its reply.

    Special tokens, and those beyond the vocabulary, end a reply: they have no text.

    Args:
        language: The model, for its vocabulary.
        prompt: The tokens to continue.
        sampling: How.
        limit: The most tokens of prompt and reply together.

    Attributes:
        tokens: All tokens so far.
        seed: The seed of its random numbers; see `uniform`.
        prompt: How many of them are the prompt's.
        finish: Why it ended; None while it has not.

    Raises:
        ArgumentError: The prompt is empty, too long, or has what is not a token.
    """

    def __init__(
        self, language: LanguageModel, prompt: Sequence[int], sampling: Sampling, limit: int
    ) -> None:
        self.tokens, self.prompt = list(prompt), len(prompt)
        self.sampling = sampling
        self._most = min(self.prompt + sampling.max_tokens, limit)
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
        # -1 is what is chosen where the logits are not finite.
        self._ends = language.ends | {-1}
        self._untold: list[int] = []
        self._new: list[int] = []
        self._likelihoods: list[Likelihood] = []
        self.finish: Finish | None = None
        self._end: Finish | None = None

    def __len__(self) -> int:
        """How many tokens it has besides the prompt."""
        return len(self.tokens) - self.prompt

    def uniform(self, ahead: int = 0) -> float:
        """Return the number that the next token is drawn with, or one further ahead."""
        return uniform(self.seed, len(self) + ahead)

    @property
    def left(self) -> int:
        """The most tokens that may still come."""
        return self._most - len(self.tokens)

    @property
    def ended(self) -> bool:
        """Whether no token follows; its last piece may not have been returned yet."""
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
        left = self.left
        new, cut = list(tokens[:left]), None
        if not self._ends.isdisjoint(new):
            place = next(n for n, token in enumerate(new) if token in self._ends)
            cut = new[place]
            del new[place:]
        self.tokens += new
        self._untold += new
        if likelihood is not None and new:
            self._likelihoods.append(likelihood)
        if cut == -1:
            raise UnstableError(
                "the model's logits are not finite after "
                f"{len(self.tokens)} tokens; check its weights and its dtype"
            )
        if cut is not None:
            self._end = "stop"
        elif len(new) == left:
            self._end = "length"

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
        """Return the text of tokens that was not returned yet; a stop text ends the reply."""
        untold, self._untold = self._untold, []
        if not self.sampling.stop:
            self._new += untold
            return self._stream.push(*untold) if untold else ""
        text = ""
        # A stop text may be complete after any token, and those behind it do not count.
        for token in untold:
            self._new.append(token)
            text += self._stream.push(token)
            if self._stream.stopped:
                self._end = "stop"
                break
        return text

    def _piece(self, text: str) -> Piece:
        piece = Piece(text, tuple(self._new), tuple(self._likelihoods), self.finish)
        self._new, self._likelihoods = [], []
        return piece
