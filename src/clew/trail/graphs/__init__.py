"""Graphs: walks over edges, and graphs of relations."""
