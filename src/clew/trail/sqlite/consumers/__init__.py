"""Durable consumers on SQLite: claims, deliveries and dead letters."""
