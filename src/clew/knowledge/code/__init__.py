"""The index of a repository's code: symbols and the edges between them. It is derived from files and can be rebuilt."""
