"""Convert files of any kind into a corpus of byte patches."""
