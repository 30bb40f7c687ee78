"""Durable consumers on PostgreSQL: claims, deliveries and dead letters."""
