"""Tools that read and change files of a working folder."""
