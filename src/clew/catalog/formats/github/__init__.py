"""Formats of GitHub: pull requests, commits and issues."""
