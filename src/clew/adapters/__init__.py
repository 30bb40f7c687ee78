"""The external interfaces (called doors): each parses requests, calls the trail, and renders the answers."""
