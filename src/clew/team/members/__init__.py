"""The ten agents of the team: their definitions and skills as markdown, their tools, hooks and checkpoints."""
