"""Search without I/O: text, ranking, vectors and columns."""
