"""Modules that run inside the sandbox of a check, with the Python of the project. They import nothing of Clew."""
