"""The workspace of one folder: its domains, its repository and the modules of other packages."""
