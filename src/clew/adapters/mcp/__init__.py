"""The MCP door: two tools and the resources of a catalog, over stdio and streamable HTTP, on both protocol eras.

Importing the SDK takes most of a second, so the parts are imported from their modules: `server`, `stdio`, `http`.
"""
