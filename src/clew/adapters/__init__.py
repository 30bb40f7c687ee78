"""The external interfaces, called doors: CLI, REST, MCP and Python. Each parses requests, calls the trail, and renders
the answers."""
