"""Domains of the catalog for code, history and reference, with guidance to the next call."""
