"""The permission policy: rules, settings, shell commands and lasting patterns."""
