"""Facts from source files: a walker over syntax trees, and a table of handlers for each language."""
