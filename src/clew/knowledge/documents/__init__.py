"""Documents: sources that users add, and research over them."""
