"""The sidecar: documents, views and patches in an SQLite file with plain columns."""
