"""The MCP server: two tools and the resources of a catalog, over stdio and streamable HTTP, in both protocol eras.

Importing the SDK takes most of a second, so import the parts from their modules: `server`, `stdio`, `http`.
"""
