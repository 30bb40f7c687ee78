"""Failures of tools, circuit breakers, health, and the repair of tools."""
