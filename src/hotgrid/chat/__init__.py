"""chat: language models, from training to conversation.

`GPT` is the model, `GPTConfig` its shape, and `Recipe` derives both and the settings of
training from a depth. `load_model` and `save_model` read and write a model with its
vocabulary. `export_llama` and `load_llama` exchange models with other tools.
"""

from ._compress import (
    ModelMeasure as ModelMeasure,
    compress_model as compress_model,
    measure as measure,
    text_rows as text_rows,
)
from ._demo import demo as demo
from ._eval._questions import (
    AnswerScore as AnswerScore,
    ChoiceScore as ChoiceScore,
    final_answer as final_answer,
    score_answers as score_answers,
    score_choices as score_choices,
)
from ._eval._text import (
    TextScore as TextScore,
    continuation_likelihoods as continuation_likelihoods,
    score_text as score_text,
)
from ._generate._engine import Engine as Engine
from ._generate._request import Request as Request, UnavailableError as UnavailableError
from ._generate._sampling import Likelihood as Likelihood, Sampling as Sampling
from ._generate._single import generate as generate
from ._generate._text import Piece as Piece
from ._model._config import GPTConfig as GPTConfig
from ._model._export import export_llama as export_llama
from ._model._folder import (
    LanguageModel as LanguageModel,
    load_model as load_model,
    save_model as save_model,
)
from ._model._gpt import GPT as GPT
from ._model._llama import load_llama as load_llama, save_llama as save_llama
from ._model._recipe import Recipe as Recipe
from ._model._vocabulary import chat_encoding as chat_encoding
from ._template import ChatMessage as ChatMessage, render as render
from ._training._conversations import (
    ConversationData as ConversationData,
    ConversationEncoder as ConversationEncoder,
    conversation as conversation,
)
from ._training._loader import (
    TextBatches as TextBatches,
    TextEncoder as TextEncoder,
    TokenBatch as TokenBatch,
)
from ._training._optimizer import optimizers as optimizers
from ._training._pretrain import TextData as TextData, pretrain as pretrain
from ._training._run import RunSettings as RunSettings
from ._training._samples import samples as samples
from ._training._tokenizer import (
    find_vocabulary as find_vocabulary,
    train_vocabulary as train_vocabulary,
)
from ._training._tune import Tuning as Tuning, tune as tune
