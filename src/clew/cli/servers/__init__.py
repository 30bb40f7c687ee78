"""Commands for MCP: serve, connect clients, add and list foreign servers."""
