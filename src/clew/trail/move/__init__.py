"""Moves a whole trail from one place to another, whatever its backends are."""
