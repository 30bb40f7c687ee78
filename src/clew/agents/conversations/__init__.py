"""Conversations: the functions with which the CLI, REST and other interfaces talk to an agent."""
