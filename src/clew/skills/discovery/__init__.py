"""Search for skills and their references by a need."""
