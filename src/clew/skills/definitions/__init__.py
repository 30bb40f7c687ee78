"""Clew's own format: the build of a manifest, its loader, new skills and imported ones."""
