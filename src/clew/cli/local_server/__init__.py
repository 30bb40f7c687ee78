"""A running `clew up` answers `clew ask` of the same user, folder and settings through a socket in the folder."""
