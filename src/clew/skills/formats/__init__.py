"""Skills, agents, commands and rules in the formats of other programs, one module for each kind of file.

`file_kinds` recognises a file by its path, `safe_open` reads it safely, `source` parses its values.
"""
