"""Where documents come from: files, rows, archives, data sets."""
