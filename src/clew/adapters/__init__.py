"""The doors: each parses what comes in, calls the trail, and renders the answer."""
