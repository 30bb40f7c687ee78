"""The team at the command line: its messages as lines, its state as a live view, and questions to the user."""
