"""The contenders of the knowledge benchmark: ways from a question to files, each over the same files."""
