"""A running `clew up` or `clew mcp` answers `clew ask` of the same user, folder and settings through a socket in the
folder."""
