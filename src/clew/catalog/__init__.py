"""The catalog: domains of tools and resources behind two operations, `ask` and `get`."""
