"""Moves a whole trail from one place to another, between any backends."""
