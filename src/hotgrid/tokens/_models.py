"""Which encoding an OpenAI model uses."""

from types import MappingProxyType

from hotgrid.errors import near

_O200K = "o200k_base"
_CL100K = "cl100k_base"

_NAMES = {
    _O200K: "o1 o3 o4-mini gpt-5 gpt-4.1 gpt-4o",
    _CL100K: "gpt-4 gpt-3.5-turbo gpt-3.5 gpt-35-turbo davinci-002 babbage-002 "
    "text-embedding-ada-002 text-embedding-3-small text-embedding-3-large",
    "p50k_base": "text-davinci-003 text-davinci-002 code-davinci-002 code-davinci-001 "
    "code-cushman-002 code-cushman-001 davinci-codex cushman-codex",
    "r50k_base": "text-davinci-001 text-curie-001 text-babbage-001 text-ada-001 davinci curie "
    "babbage ada text-similarity-davinci-001 text-similarity-curie-001 "
    "text-similarity-babbage-001 text-similarity-ada-001 text-search-davinci-doc-001 "
    "text-search-curie-doc-001 text-search-babbage-doc-001 text-search-ada-doc-001 "
    "code-search-babbage-code-001 code-search-ada-code-001",
    "p50k_edit": "text-davinci-edit-001 code-davinci-edit-001",
    "gpt2": "gpt2 gpt-2",
}
MODELS = MappingProxyType(
    {model: encoding for encoding, models in _NAMES.items() for model in models.split()}
)
# Names of versions and of fine-tuned models, by prefix; the first match wins.
PREFIXES = (
    ("o1-", _O200K),
    ("o3-", _O200K),
    ("o4-mini-", _O200K),
    ("gpt-5", _O200K),
    ("gpt-4.5-", _O200K),
    ("gpt-4.1-", _O200K),
    ("chatgpt-4o-", _O200K),
    ("gpt-4o-", _O200K),
    ("gpt-4-", _CL100K),
    ("gpt-3.5-turbo-", _CL100K),
    ("gpt-35-turbo-", _CL100K),
    ("gpt-oss-", "o200k_harmony"),
    ("ft:gpt-4o", _O200K),
    ("ft:gpt-4", _CL100K),
    ("ft:gpt-3.5-turbo", _CL100K),
    ("ft:davinci-002", _CL100K),
    ("ft:babbage-002", _CL100K),
)


def encoding_name_for_model(model_name: str) -> str:
    """The name of the encoding that a model uses.

    Args:
        model_name: For example `gpt-4o`, or a version of it such as `gpt-4o-2024-05-13`.

    Raises:
        KeyError: The model is unknown.

    Example:
        >>> encoding_name_for_model("gpt-4o-mini")
        'o200k_base'
    """
    if model_name in MODELS:
        return MODELS[model_name]
    for prefix, encoding in PREFIXES:
        if model_name.startswith(prefix):
            return encoding
    raise KeyError(
        f"No model {model_name!r} is known.{near(model_name, MODELS, ' Did you mean {!r}?')} "
        "If you know its encoding, ask for that with `get_encoding`."
    )
