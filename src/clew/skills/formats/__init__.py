"""The formats that skills, agents, commands and rules already have: one module for each kind of file.

`places` tells by its place what a file is, `opening` reads it safely, `source` reads its values.
"""
