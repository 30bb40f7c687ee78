"""Documents: the repository's own, those of its packages, and sources that users add; and research over them."""
