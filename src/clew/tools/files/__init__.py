"""Tools that read and change files in a working folder."""
