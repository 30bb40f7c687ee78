"""Parsing of values that people type or pass in files."""
