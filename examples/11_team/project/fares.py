"""Fares of the ferry, in cents."""

ADULT = 1200
CHILD = 600
