"""The team: the Guide, which chooses the agent that takes a message. Importing this package loads nothing."""
