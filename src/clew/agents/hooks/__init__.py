"""Hooks around prompts and tool calls."""
