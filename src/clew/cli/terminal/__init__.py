"""Output on a terminal: tables, progress, markdown and log lines."""
