"""Authentication with foreign MCP servers: tokens, OAuth and the login in a browser."""
