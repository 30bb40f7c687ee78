"""Definitions in the own format: built into one manifest, loaded, begun anew and imported."""
