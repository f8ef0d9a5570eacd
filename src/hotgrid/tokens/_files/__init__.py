"""Files of vocabularies: tiktoken's and HuggingFace's formats, and where published ones are."""

from ._byte_letters import letters as letters, to_bytes as to_bytes
from ._huggingface import (
    load_huggingface as load_huggingface,
    save_huggingface as save_huggingface,
)
from ._rank_files import load_tiktoken as load_tiktoken, save_tiktoken as save_tiktoken
from ._vocabularies import read_vocabulary as read_vocabulary
