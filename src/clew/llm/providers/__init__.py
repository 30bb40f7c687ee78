"""Providers of models: settings, keys, and calls over the network."""
