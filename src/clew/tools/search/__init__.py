"""Tools that find files and lines, and the rules of `.gitignore`."""
