"""Search over the text of a folder: words, vectors and ranking."""
