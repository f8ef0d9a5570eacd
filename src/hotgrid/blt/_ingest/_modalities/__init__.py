"""What documents are: each modality is one file, listed in `_registry`."""
