"""What patches belong to, in an SQLite file with plain columns."""
