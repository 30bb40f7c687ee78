"""Edges between symbols: imports, calls, inheritance."""
