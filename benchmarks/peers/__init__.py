"""Other libraries: the same grid cases, as well as each can state them, and tokenizers."""
