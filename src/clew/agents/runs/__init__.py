"""Runs: the runners of agents, tools and workflows, and the state of a run."""
