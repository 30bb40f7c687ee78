"""Agents, tools and workflows at work: handlers that turn one event into new breadcrumbs, and end."""
