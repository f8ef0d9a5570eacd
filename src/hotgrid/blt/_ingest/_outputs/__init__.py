"""What is written: documents, shards, lists, the report; and how it is read and checked."""
