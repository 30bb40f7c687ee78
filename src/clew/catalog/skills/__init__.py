"""The domain `skills`: what the files of a folder define for agents, found, loaded and unloaded by any caller."""
