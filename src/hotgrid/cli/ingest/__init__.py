"""`hotgrid ingest`: converts files of any kind into a corpus of byte patches."""
