"""Connections to foreign MCP servers: transports, timeouts, notifications and errors."""
