"""Agents, skills, toolsets and rules in markdown: reading, checks, search, loading for a conversation, explanations.

Programs start with `clew.skills.library`, and with `clew.skills.rules` for rules. The other packages are internal.
"""
