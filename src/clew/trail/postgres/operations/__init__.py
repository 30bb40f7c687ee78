"""Work on a whole database: its state for `clew doctor`, and its tables for a move."""
