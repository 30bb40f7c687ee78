"""The folders that a sandboxed program can reach."""
