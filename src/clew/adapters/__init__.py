"""The servers' interfaces: REST and MCP. Each parses requests, calls one function, and renders the answer."""
