"""Agents, skills, toolsets and rules as markdown: read and checked, found, loaded for one conversation, explained.

`clew.skills.library` is what a program begins with, `clew.skills.rules` what it reads rules by.
"""
