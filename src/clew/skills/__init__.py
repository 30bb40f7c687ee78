"""Agents, skills, toolsets and rules as markdown: read and checked, found, loaded for one conversation, explained.

The modules here are what a program uses: it begins with `clew.skills.library`. The packages are how that works; of
these `clew.skills.rules` is for programs too.
"""
