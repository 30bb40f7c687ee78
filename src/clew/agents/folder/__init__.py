"""The agents of a folder: read from markdown, registered, or blocked."""
