"""The two operations of the catalog, `ask` and `get`, and the layout of their answers."""
