"""Tools, resources and prompts of foreign MCP servers, as listed and as stored."""
