"""Agents that replay the calls of AgentDojo under rules and budgets."""
