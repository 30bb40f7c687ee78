"""The domain `skills`. Callers find, load and unload the skills that the files of a folder define."""
