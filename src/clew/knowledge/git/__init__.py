"""Git: safe calls, the log with full text over it, blame and tags."""
