"""Hints and templates: how a breadcrumb is shown to a model."""
