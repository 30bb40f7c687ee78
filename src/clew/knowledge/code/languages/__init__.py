"""How each language is read: one walk over the tree of a file, with a table of what to do at which kind of node."""
