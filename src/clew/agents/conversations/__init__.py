"""Conversations: the interface that every door uses to talk to an agent."""
