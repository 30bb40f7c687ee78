"""The team: the Guide, which decides who takes a message. Importing this package loads nothing."""
