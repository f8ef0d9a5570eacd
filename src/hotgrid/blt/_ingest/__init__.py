"""Files of any kind into a corpus of bytes in patches."""
