"""Clew: a context engine and team runtime for AI agents. The trail is in `clew.trail`, the client in `clew.client`."""

__version__ = "0.1.0"
