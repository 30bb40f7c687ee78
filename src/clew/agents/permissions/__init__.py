"""Permissions of agents: decisions, questions to the user and lasting permissions."""
