"""The search index of a SQLite trail."""
