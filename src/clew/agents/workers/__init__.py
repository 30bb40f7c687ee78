"""Processes that share the work of one trail: their roles, their records, and where work is placed."""
