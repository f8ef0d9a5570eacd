"""The kinds of documents: each modality is one file, listed in `_registry`."""
