"""Search for skills and their references."""
