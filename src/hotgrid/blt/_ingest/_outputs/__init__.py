"""The files of a corpus: documents, shards, lists, the report; written, read and checked."""
